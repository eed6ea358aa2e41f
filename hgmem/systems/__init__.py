"""Systems: ways of remembering and answering, a room each."""
