"""What both languages share: source text, tokens, lexer, token cursor, spelling hints."""
