// name: server_version() read
// The server's version and edition.
CYPHER 25 CALL dbms.components() YIELD name, versions, edition
WHERE name = 'Neo4j Kernel'
RETURN versions[0] AS version, edition;

// name: server_settings(names) read
// Settings of the server by name; nothing where the user may not read them.
CYPHER 25 SHOW SETTINGS YIELD name, value WHERE name IN $names
RETURN name, value;
