"""Decides which candidates are matches: rule tables, named profiles and guards.

Begin with `rule`; its rows are in `match_row`, the profiles that ship in `profiles`.
"""
