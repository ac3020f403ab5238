"""Models behind HTTP: a JSON interface, Annif's interface, and a page. Needs the extra ``serve``."""
