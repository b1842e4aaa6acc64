"""All numbers of a format against the truth, with a proven maximum.

A definition runs on power series over intervals, which gives polynomials with proven
remainders (`pieces`). All inputs are compared with those, in double precision
(`measure`), and counted (`spans`); what the polynomials leave open is certified point
by point.
"""
