// name: server_version() read
// The server's version and edition.
CYPHER 25 CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition;
