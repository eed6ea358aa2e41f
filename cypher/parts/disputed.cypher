// What several statements contain, at a line that names it: `// part: disputed`.
// Whether the trail `t` is everybody's, and that of the owner who asks speaks so much against it that it is not strong.
EXISTS {
  MATCH (t)-[:BETWEEN]->(tied)<-[:BETWEEN]-(own:Trail {corpus: $corpus})
  WHERE tied.corpus = $corpus AND $rule.owner <> '' AND own.key = t.key + $rule.owner AND CASE WHEN own.length > 0.000001
    THEN own.length * (2 * vector.similarity.cosine(own.vector, $vector) - 1) < 0.0
         AND $rule.alpha * t.alike
             + $rule.rest * (t.length * (2 * vector.similarity.cosine(t.vector, $vector) - 1)
                             + own.length * (2 * vector.similarity.cosine(own.vector, $vector) - 1)) <= $rule.strong
    ELSE false END
}
