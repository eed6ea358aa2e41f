// What several statements contain, at a line that names it: `// part: near_learnings`.
// Of each `owner`, the `most` learnings `l` whose questions are nearest to a vector, and as many answers that were wrong,
// each with the score `s` of the index: so very many of one owner's hide none of another's, and none of these answers.
CALL (owner) {
  MATCH (l:Learning)
  SEARCH l IN (VECTOR INDEX learning_vector FOR $vector WHERE l.corpus = $corpus AND l.owner = owner LIMIT $most) SCORE AS s
  WITH l, s WHERE NOT l:Correction
  RETURN l, s
  UNION ALL
  MATCH (l:Correction)
  SEARCH l IN (VECTOR INDEX correction_vector FOR $vector WHERE l.corpus = $corpus AND l.owner = owner LIMIT $most) SCORE AS s
  RETURN l, s
}
