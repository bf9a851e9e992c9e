# SPDX-License-Identifier: MIT
"""The tests of each folder, as globs below tests/. The first row whose folder is or contains the given
one applies. The order within a list does not matter: run begins with the tests that share words with
the mutated file."""

TABLE = [
    ("framework/admission", ["unit/admission/*", "unit/stage/test_admit*", "unit/stage/test_front_door*", "unit/stage/test_sink*",
                             "unit/graph/test_graph_route*", "unit/stage/test_requeue*", "policy/test_front*",
                             "policy/test_sim_laws*", "policy/test_sim_model*", "torture/torture_front*"]),
    ("framework/control", ["unit/control/*", "unit/graph/test_graph_control*", "unit/graph/test_graph_resize*",
                           "unit/graph/test_graph_batch*", "unit/operate/test_changes*", "unit/graph/test_graph_kin*",
                           "policy/test_pool_criteria*", "torture/torture_acts*"]),
    ("framework/sched", ["unit/sched/*", "unit/graph/test_wakeups*", "unit/stage/test_stage*", "unit/graph/test_death*",
                         "unit/graph/test_drain*", "unit/stage/test_thread_books*", "unit/graph/test_graph*",
                         "unit/graph/test_watchdog*", "unit/stage/test_held*", "fault/fault_pool*", "torture/torture_graph*", "torture/torture_queue*"]),
    ("framework/event", ["unit/event/*", "unit/stage/*", "unit/graph/*", "unit/trace/*", "fault/fault_graph*", "fault/fault_books*",
                         "torture/torture_queue*", "torture/torture_graph*"]),
    ("framework/trace", ["unit/trace/*", "unit/graph/test_slowest*", "unit/graph/test_graph*"]),
    ("framework/stage", ["unit/stage/*", "unit/sched/*", "unit/graph/*", "unit/io/*", "fault/fault_pool*", "fault/fault_graph*",
                         "torture/torture_front*", "torture/torture_graph*", "torture/torture_queue*"]),
    ("framework/plan", ["unit/plan/*", "unit/config/*", "unit/graph/*", "fault/fault_graph*"]),
    ("framework/graph", ["unit/graph/*", "unit/stage/*", "unit/operate/*", "unit/sched/*", "unit/io/*", "unit/control/test_control*",
                         "fault/fault_pool*", "fault/fault_graph*", "torture/torture_acts*", "torture/torture_front*",
                         "torture/torture_graph*", "torture/torture_queue*"]),
    ("framework/operate", ["unit/operate/*", "unit/graph/*", "fault/fault_graph*", "fault/fault_reload*",
                           "torture/torture_acts*"]),
    ("framework/base", ["unit/base/*", "unit/io/test_timer*", "unit/graph/test_graph*"]),
    ("framework/io", ["unit/io/*", "scenario/test_http_late*", "scenario/test_http_turn*", "scenario/test_http_requests*"]),
    ("config", ["unit/config/*", "unit/plan/test_plan*", "unit/plan/test_spec*", "fault/fault_config*"]),
    ("export", ["unit/export/*"]),
    # Most tests of the server are scripts (tests/cli), which run does not use: few mutants are killed.
    ("server", ["unit/server/*", "cli/test_notify*"]),
    ("admin", ["unit/admin/*", "fault/fault_admin*", "scenario/test_admin*", "scenario/test_acts*"]),
    ("stages/basic", ["unit/basic/*", "scenario/test_http_stages*", "scenario/test_http_pieces*", "scenario/test_http_streams*"]),
    ("stages/file", ["unit/file/*", "scenario/test_file_*", "fault/fault_file*"]),
    ("stages/http", ["unit/http/*", "scenario/test_http_*", "scenario/test_access_log*", "fault/fault_accept*",
                     "fault/fault_access_log*", "fault/fault_eintr*", "fault/fault_http*", "fault/fault_turn*",
                     "torture/torture_parts*"]),
    ("stages/net", ["unit/net/*", "unit/http/*", "scenario/test_http_*", "fault/fault_accept*", "fault/fault_eintr*",
                    "fault/fault_turn*"]),
    ("stages", ["unit/basic/*", "unit/file/*", "unit/http/*", "unit/net/*", "scenario/test_*"]),
]


def tests_of(folder):
    for name, globs in TABLE:
        if folder == name or folder.startswith(name + "/"):
            return globs
    return []
