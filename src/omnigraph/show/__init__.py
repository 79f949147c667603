"""How values are shown to people: as text, in notebooks, as drawings. Knows no value itself."""
