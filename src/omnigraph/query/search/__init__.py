"""Search over columns of one snapshot: words, vectors, fused rankings.

    text column   ─▶ analyzer ─▶ text_index ─▶ rows that match, BM25 scores ─┐
                                  └ spelling (words within some edits)        ├─▶ fusion ─▶ scores
    vector column ─▶ vectors  ─▶ rows by distance ───────────────────────────┘
    query text    ─▶ embedding ─▶ query vector

Pure computation: the executor hands in columns in row order and candidate row numbers and gets row
numbers and scores back. Nothing here reads a table or knows an id, so ties between rows are left to
the executor.
"""
