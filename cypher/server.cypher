// name: server_version() read
// Return the server's version and edition.
CYPHER 25 CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition;

// name: server_settings(names) read
// Return settings of the server by name, without those that the user may not read.
CYPHER 25 SHOW SETTINGS YIELD name, value WHERE name IN $names
RETURN name, value;
