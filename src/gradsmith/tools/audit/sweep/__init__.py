"""All numbers of a format against the truth, with a proven maximum.

A definition runs on power series over intervals (`series`, `functions`), which gives
polynomials with proven remainders (`pieces`). All inputs are compared with those, in
double precision (`judge`), and counted (`tally`); what the polynomials leave open goes
to the oracle point by point.
"""
