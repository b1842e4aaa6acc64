"""How results are shown: one model, and one renderer each for terminal, HTML, page.

What a result is made of is in `result`; JSON is its `to_json`.
"""
