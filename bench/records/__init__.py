"""Records: what one trial leaves on disk, its key, its schema, and the folder that holds it."""
