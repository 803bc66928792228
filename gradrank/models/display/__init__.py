"""How things show themselves in notebooks: tables and learning curves as small pieces of HTML."""
