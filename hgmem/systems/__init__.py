"""Systems: ways of remembering and answering, a package each."""
