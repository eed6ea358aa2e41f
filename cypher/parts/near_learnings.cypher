// What several statements contain, at a line that names it: `// part: near_learnings`.
// Of each `owner`, the `most` learnings `l` whose questions are nearest to a vector, and as many that record wrong answers,
// each with the score `s` of the index: so very many of one owner's hide none of another's, and no wrong answer. These
// take room among the nearest too. They are few, so all of an owner are compared.
CALL (owner) {
  MATCH (l:Learning)
  SEARCH l IN (VECTOR INDEX learning_vector FOR $vector WHERE l.corpus = $corpus AND l.owner = owner LIMIT $most) SCORE AS s
  WITH l, s WHERE l.wrong IS NULL
  RETURN l, s
  UNION ALL
  MATCH (l:Learning {corpus: $corpus, owner: owner, wrong: true}) USING INDEX l:Learning(corpus, owner, wrong)
  WITH l, vector.similarity.cosine(l.vector, $vector) AS s ORDER BY s DESC, l.uid LIMIT $most
  RETURN l, s
}
