-- A store as version 1 of the schema wrote it: one run of two trials.
BEGIN TRANSACTION;
CREATE TABLE census (
    run         integer not null references run (id),
    config      text not null,
    hash        text not null,      -- of the event stream
    events      integer not null,
    writes      integer not null,
    violations  text not null,      -- JSON list of Violation
    primary key (run, config)
) without rowid;
INSERT INTO "census" VALUES(1,'a','h',10,5,'[]');
CREATE TABLE exploration (
    run         integer not null references run (id),
    config      text not null,
    summary     text not null,      -- JSON: the explorer's last object
    primary key (run, config)
) without rowid;
CREATE TABLE run (
    id          integer primary key,
    campaign    text not null,      -- name, as "smoke"
    target      text not null,      -- name, as "engine"
    seed        integer not null,
    trials      integer not null,   -- planned
    settings    text not null,      -- JSON: the whole campaign after --set, from which trials are drawn again
    state       text not null check (state in ('running', 'finished')),
    seconds     real not null       -- spent on trials so far, over all resumptions
);
INSERT INTO "run" VALUES(1,'smoke','engine',1,2,'{"name": "smoke"}','finished',0.0);
CREATE TABLE schema_version (
    version integer not null
);
INSERT INTO "schema_version" VALUES(1);
CREATE TABLE trial (
    run         integer not null references run (id),
    number      integer not null,   -- counts from 0; "RUN.NUMBER" is the id that `tornpage replay` takes
    spec        text not null,      -- JSON TrialSpec: all that a replay needs
    config      text not null,
    site        text not null,
    mask        text not null,
    outcome     text,               -- null while it runs
    result      text,               -- JSON TrialResult, null while it runs
    primary key (run, number)
) without rowid;
INSERT INTO "trial" VALUES(1,0,'{"campaign": "smoke", "target": "engine", "config": "log_optimize_ddl=on", "options": {"page_size": "4k"}, "workload": "smoke", "params": {}, "workload_seed": 1, "seed": 7, "number": 0, "plan": {"name": "p", "run": [{"kind": "write", "nth": 1, "action": "kill", "file": "t1.ibd", "offset": null, "sector": 512, "sectors": "prefix:1", "bytes": null, "when": "before", "error": null, "shift": null, "text": null}], "recover": [], "stale_log": false, "loss": ""}}','log_optimize_ddl=on','page0','none','clean','{"number": 0, "outcome": "clean", "reason": "", "violations": [], "site": "page0", "mask": "", "path": "", "offset": null, "page_no": null, "counters": {"dblwr_restored": 1}, "seconds": {}, "peak_bytes": 0, "written_bytes": 0, "events": 0, "trace_hash": "a", "digest": "", "image": null, "torn": null}');
INSERT INTO "trial" VALUES(1,1,'{"campaign": "smoke", "target": "engine", "config": "log_optimize_ddl=on", "options": {"page_size": "4k"}, "workload": "smoke", "params": {}, "workload_seed": 1, "seed": 7, "number": 1, "plan": {"name": "p", "run": [{"kind": "write", "nth": 1, "action": "kill", "file": "t1.ibd", "offset": null, "sector": 512, "sectors": "prefix:1", "bytes": null, "when": "before", "error": null, "shift": null, "text": null}], "recover": [], "stale_log": false, "loss": ""}}','log_optimize_ddl=on','page0','none','violation','{"number": 1, "outcome": "violation", "reason": "", "violations": [{"invariant": 5, "what": "page 3 is torn", "site": "page0", "path": "t1.ibd"}], "site": "page0", "mask": "", "path": "", "offset": null, "page_no": null, "counters": {}, "seconds": {}, "peak_bytes": 0, "written_bytes": 0, "events": 0, "trace_hash": "b", "digest": "", "image": null, "torn": {"path": "t1.ibd", "offset": 0, "length": 1024, "sector": 512, "kept": "10", "old": "b29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb29vbw==", "new": "bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubg=="}}');
CREATE TABLE violation (
    run         integer not null references run (id),
    trial       integer not null,
    position    integer not null,
    invariant   integer not null,
    site        text,
    path        text not null,
    what        text not null,
    primary key (run, trial, position)
) without rowid;
INSERT INTO "violation" VALUES(1,1,0,5,'page0','t1.ibd','page 3 is torn');
COMMIT;
