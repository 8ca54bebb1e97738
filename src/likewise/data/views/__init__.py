"""Views of images: augmentation in batches on the training device, with per-sample parameters."""

from likewise.data.views.parameters import Parameters
from likewise.data.views.pixels import prepare
from likewise.data.views.policies import POLICIES, find_policy, plain_policy
from likewise.data.views.policy import Policy
from likewise.data.views.sheet import view_sheet
from likewise.data.views.views import Views

__all__ = [
    "POLICIES",
    "Parameters",
    "Policy",
    "Views",
    "find_policy",
    "plain_policy",
    "prepare",
    "view_sheet",
]
