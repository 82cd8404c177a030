"""What each party makes of what it sees of DBCL."""
