"""What anomaly mode notes on nodes: where an operator was called, and in whose backward."""

from __future__ import annotations

import threading
import traceback

from flambeau.autograd.graph import Node


class Evaluating(threading.local):
    """The node whose formula runs in this thread, in anomaly mode."""

    node: Node | None = None


evaluating = Evaluating()


def note(node: Node, depth: int) -> None:
    """In anomaly mode: remember where the operator was called, and in which node's backward.

    depth: how many of the innermost calls are not the user's.
    """
    node.metadata["traceback_"] = traceback.format_stack()[: -depth - 1]
    if evaluating.node is not None:
        node.metadata["parent_"] = evaluating.node
