"""Which site publishes which story, and with which edits: the truth of the demo, as data.

An entry of `REPOSTS` reads: this site publishes this story after these edits.
"""

Repost = tuple[str, str, tuple[str, ...]]

REPOSTS: tuple[Repost, ...] = (
    ("portal", "zh-bridge", ("other template",)),
    ("fanti", "zh-bridge", ("traditional characters", "new headline")),
    ("portal", "zh-library", ("new headline", "adverts")),
    ("portal", "zh-rice", ("tail cut",)),
    ("portal", "zh-metro", ("source line", "typography")),
    ("fanti", "zh-street", ("traditional characters", "adverts")),
    ("portal", "zh-lunch", ("first half only",)),
    ("portal", "zh-birds", ("new headline",)),
    ("fanti", "zh-birds", ("traditional characters",)),
    ("portal", "zh-clinic", ("adverts",)),
    ("portal", "zh-marathon", ("new headline",)),
    ("portal", "zh-photon", ("new headline", "source line", "typography")),
    ("wire", "en-ferry", ("new headline", "source line")),
    ("wire", "en-lighthouse", ("source line",)),
    ("wire", "en-flood", ("adverts",)),
    ("wire", "en-nighttrain", ("typography",)),
    ("wire", "en-orchard", ("tail cut",)),
    ("wire", "en-tools", ("other template",)),
    ("wire", "en-seabirds", ("new headline",)),
    ("wire", "en-orchestra", ("first half only",)),
    ("wire", "en-cyber", ("source line", "adverts")),
)

MOBILE = ("zh-metro",)
"""Stories of the daily whose lists link to a mobile page, which names the full page as canonical."""

PRINTED = ("zh-marathon-safety",)
"""Stories of the daily whose page links to a print view, which names the page as canonical. Nobody reposts them."""

SAME_EVENT = {
    "zh-bridge-people": "zh-bridge",
    "zh-marathon-safety": "zh-marathon",
    "en-ferry-workers": "en-ferry",
}
"""Stories by another reporter about an event that another story covers → that story; both are to be kept."""
