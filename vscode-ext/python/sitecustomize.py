"""Makes the packages that come with the Run Bridge extension importable in a run.

The extension puts this folder, and nothing else, on PYTHONPATH. Python imports ``sitecustomize``
when it starts. This one adds a finder behind all others, so that whatever the user has installed,
in whatever way, comes first; then it hands over to the ``sitecustomize`` that would have been
imported without it.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGES = os.path.join(os.path.dirname(_HERE), "packages")


class _BundledPackages:
    """Finds top-level packages in the bundle, if no other finder has found them."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [_PACKAGES]) if path is None else None


def _hand_over():
    others = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.meta_path.append(_BundledPackages)
_hand_over()
