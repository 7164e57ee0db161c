"""Tasks: where contexts come from and how answers are checked. No torch in this folder."""
