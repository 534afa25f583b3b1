"""The net runner, `python -m vscode_bridge.net`."""

from __future__ import annotations

from pathlib import Path

from bridge import Daemon, chat_rule
from nets import check, flat, run_net


def test_tokens_move_oldest_first(net: Path) -> None:
    assert check(net, flat("print(repr(token))"), out="1\n'two'\n") == ""


def test_trace_shows_steps_and_marking(net: Path) -> None:
    stderr = check(net, flat("pass"), "--trace", out="")
    assert stderr.splitlines() == [
        "step 1: move took [1] from a; [1] to b",
        "step 2: move took ['two'] from a; ['two'] to b",
        "2 steps; marking {'a': [], 'b': [1, 'two']}",
    ]


def test_marking_and_nested_arcs_and_inscriptions(net: Path) -> None:
    check(
        net,
        """
        pnml:
          net:
            - id: n
              page:
                - id: p
                  place:
                    - id: p1
                      marking: [1]
                    - id: p2
                  transition:
                    - id: t1
                      arcs:
                        - {id: a1, source: p1, target: t1}
                        - {id: a2, source: t1, target: p2}
                      inscriptions:
                        - id: expr1
                          code: print("fired with", token)
                    - id: t2
                      arcs:
                        - source: p2
                      inscriptions:
                        - code: print("and ended")
        """,
        out="fired with 1\nand ended\n",
    )


def test_single_mappings_plurals_and_no_page(net: Path) -> None:
    check(
        net,
        """
        pnml:
          net:
            id: n
            places: [{id: a, marking: [x]}]
            transitions: {id: t, inscriptions: {code: print(token)}}
            arcs: {source: a, target: t}
        """,
        out="x\n",
    )


def test_values_keep_their_yaml_types(net: Path) -> None:
    check(
        net,
        """
        pnml:
          net:
            place: {id: a, marking: [1, 1.5, true, "1", [1, 2], {k: v}, null]}
            transition: {id: t, arcs: {source: a}, inscriptions: {code: print(repr(token))}}
        """,
        out="1\n1.5\nTrue\n'1'\n[1, 2]\n{'k': 'v'}\nNone\n",
    )


def test_two_arcs_from_one_place_take_two_tokens(net: Path) -> None:
    stderr = check(
        net,
        """
        pnml:
          net:
            place: [{id: a, marking: [1, 2, 3]}, {id: b}]
            transition: {id: t, arcs: [{source: a}, {source: a}, {target: b}]}
        """,
        "--trace",
        out="",
    )
    assert stderr.splitlines()[-1] == "1 steps; marking {'a': [3], 'b': [1, 2]}"


def test_several_inputs_and_outputs(net: Path) -> None:
    stderr = check(
        net,
        """
        pnml:
          net:
            place: [{id: a, marking: [1]}, {id: b, marking: [2]}, {id: c}, {id: d}]
            transition:
              id: t
              arcs: [{source: a}, {source: b}, {target: c}, {target: d}]
              inscriptions: {code: print(token)}
        """,
        "--trace",
        out="1\n",
    )
    assert "marking {'a': [], 'b': [], 'c': [1, 2], 'd': [1, 2]}" in stderr


def test_a_guard_chooses_the_token(net: Path) -> None:
    check(
        net,
        """
        pnml:
          net:
            place: {id: a, marking: [1, 5, 2, 7]}
            transition:
              - id: large
                arcs: {source: a}
                inscriptions:
                  - {kind: guard, code: token > 3}
                  - {code: 'print("large", token)'}
              - id: other
                arcs: {source: a}
                inscriptions:
                  - {kind: guard, code: "return token != 2"}
                  - {code: 'print("other", token)'}
        """,
        out="large 5\nlarge 7\nother 1\n",
    )


def test_async_values_become_tokens(net: Path) -> None:
    stderr = check(
        net,
        """
        pnml:
          net:
            place: [{id: a, marking: [1]}, {id: b}]
            transition:
              id: t
              arcs: [{source: a}, {target: b}]
              inscriptions:
                - {execMode: async, code: "token + 1"}
                - {execMode: async, code: "None"}
                - {execMode: sync, code: "token + 2"}
        """,
        "--trace",
        out="",
    )
    assert "'b': [2, 1]" in stderr


def test_a_value_can_replace_the_consumed_tokens(net: Path) -> None:
    stderr = check(
        net,
        """
        pnml:
          net:
            place: [{id: a, marking: [1]}, {id: b}]
            transition:
              id: t
              arcs: [{source: a}, {target: b}]
              inscriptions:
                execMode: async
                code: '{"n": 2, "_drop_moved_tokens": True}'
        """,
        "--trace",
        out="",
    )
    assert "'b': [{'n': 2, '_drop_moved_tokens': True}]" in stderr


def test_both_ways_to_import_the_module(net: Path) -> None:
    code = """
        import vscode_bridge as first
        from enginepy import vscode_bridge as second
        import enginepy.vscode_bridge as third
        print(first is second is third is vscode_bridge)
        """
    check(net, flat(code).replace("- value: two", ""), out="True\n")


def test_a_real_enginepy_is_not_shadowed(net: Path) -> None:
    engine = net.parent / "enginepy"
    engine.mkdir()
    (engine / "__init__.py").write_text("")
    (engine / "vscode_bridge.py").write_text("who = 'the real one'\n")
    code = "from enginepy import vscode_bridge\nprint(vscode_bridge.who)"
    check(net, flat(code).replace("- value: two", ""), out="the real one\n")


def test_inscriptions_share_their_global_names(net: Path) -> None:
    code = """
        global seen
        seen = globals().get("seen", 0) + 1
        print(seen)
        """
    check(net, flat(code), out="1\n2\n")


def test_the_bridge_from_a_net(net: Path, daemon: Daemon) -> None:
    host = daemon.host(chat_rule(), {"method": "vscode/showMessage", "result": {}})
    text = """
        pnml:
          net:
            place: [{id: a, marking: ["What?"]}, {id: b}]
            transition:
              - id: ask
                arcs: [{source: a}, {target: b}]
                inscriptions:
                  - {code: 'vscode_bridge.show_message(f"Asking {token}")'}
                  - {execMode: async, code: vscode_bridge.chat_async(token)}
              - id: tell
                arcs: {source: b}
                inscriptions: {code: print(token)}
        """
    done = run_net(net, text, daemon=daemon)
    assert (done.stdout, done.returncode) == ("You said: What?\nWhat?\n", 0), done.stderr
    assert host.request("vscode/showMessage")["message"] == "Asking What?"
