"""Tests of the rules: all families are read, also those that wait for a first use."""

from gradsmith import rules

rules.load_present()
