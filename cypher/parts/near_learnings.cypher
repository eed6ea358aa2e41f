// What several statements contain, at a line that names it: `// part: near_learnings`.
// Of each `owner`, the `most` learnings `l` whose questions are nearest to a vector, and the score `s` of the index, so
// that very many of one owner's hide none of another's.
CALL (owner) {
  MATCH (l:Learning)
  SEARCH l IN (VECTOR INDEX learning_vector FOR $vector WHERE l.corpus = $corpus AND l.owner = owner LIMIT $most) SCORE AS s
  RETURN l, s
}
