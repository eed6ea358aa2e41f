"""What a service of several processes keeps in a client's database: keys, sessions, their use, and jobs."""
