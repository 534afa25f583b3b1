"""A small runner for Petri nets in YAML with Python inscriptions: ``python -m vscode_bridge.net``.

It reads the nets of the evolve project (``*.evolve.yaml``, ``*.pnml.yaml``) with a real YAML parser
and fires transitions until none is enabled. In reading order: ``_model`` is a net as a value,
``_inscription`` turns code in a net into functions, ``_load`` reads a file, ``_run`` fires.

What it does not do: operations that pause a net until an editor resumes it (forms, participants),
time, priorities, or hierarchy beyond pages, whose content simply belongs to the net.
"""
