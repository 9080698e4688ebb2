"""The published evaluation set of SkillRouter (arXiv 2603.22455), fetched when a user asks for it.

It states no licence, so it is neither shipped nor passed on; it stays in the user's Hugging Face cache.
"""

from __future__ import annotations

from pathlib import Path

from skillarena.conf.errors import DataError, nearest
from skillarena.selectors.checkpoint import hub_reason

REPOSITORY = "pipizhao/SkillRouter-Eval-Core"
"""Data set on the Hugging Face hub."""
TIERS = ("easy", "hard")
"""Its pools: 78,361 skills, and the same with 780 distractors more; about 211 MB packed each."""


def fetch(tier: str, revision: str | None = None) -> Path:
    """The folder of the data set with the questions and one pool; only what is not in the cache is downloaded.

    Args:
        tier: one of ``TIERS``.
        revision: commit, tag or branch; None takes the newest. The folder's name is the commit that was found.

    Raises:
        DataError: an unknown tier, no package to download with, or the hub cannot be reached or has no such revision.
    """
    if tier not in TIERS:
        raise DataError(f"there is no tier {tier!r}{nearest(tier, TIERS)}", f"choose from {', '.join(TIERS)}")
    try:
        from huggingface_hub import snapshot_download

        return Path(
            snapshot_download(
                REPOSITORY,
                repo_type="dataset",
                revision=revision,
                allow_patterns=["tasks.jsonl", "relevance.json", "manifest.json", f"{tier}/*.jsonl.gz"],
            )
        )
    except ImportError as error:
        raise DataError(
            "downloading needs the package huggingface_hub", "pip install 'skillarena[models]', or give --data FOLDER"
        ) from error
    except Exception as error:  # the client's errors come from several packages and share no base
        raise DataError(
            f"{REPOSITORY} cannot be had from the Hugging Face hub: {hub_reason(error)}",
            "check the network (HF_HUB_OFFLINE must be unset) and --revision; without network, download it elsewhere"
            " and give --data FOLDER --tier " + tier,
        ) from error
