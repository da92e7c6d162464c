"""Why a page has its verdict, as values: what the index looked at, what the rule asked, what weighed most.

Everything here is worked out again from what is kept of the pages; nothing was written down while deciding. So an
explanation costs nothing until somebody asks, and it is right for as long as the rule is the one that decided.
"""
