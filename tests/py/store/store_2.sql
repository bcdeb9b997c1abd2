-- A store as version 2 of the schema wrote it: two runs of three trials, and a power-loss run that was interrupted.
BEGIN TRANSACTION;
CREATE TABLE census (
    run         integer not null references run (id),
    config      text not null,
    crashed     integer not null,   -- 1: its script gets trials or is explored; 0: it is only run and judged
    hash        text not null,      -- of the event stream
    events      integer not null,
    writes      integer not null,
    violations  text not null,      -- JSON list of Violation
    counters    text not null,      -- JSON: status counters at its end
    primary key (run, config)
) without rowid;
INSERT INTO "census" VALUES(1,'a',1,'h',10,5,'[]','{"btr_splits":2}');
INSERT INTO "census" VALUES(2,'a',1,'h',10,5,'[{"invariant":13,"what":"dblwr_skip: page 0:1 of LSN 17 goes home without a copy in the area: the log does not initialise it","site":null,"path":"","source":"rule"}]','{"btr_splits":2}');
CREATE TABLE contents (
    run         integer not null references run (id),
    number      integer not null,
    old         blob not null,
    new         blob not null,
    primary key (run, number)
) without rowid;
INSERT INTO "contents" VALUES(1,1,zeroblob(1024),zeroblob(1024));
CREATE TABLE exploration (
    run         integer not null references run (id),
    config      text not null,
    summary     text not null,      -- JSON: the explorer's last object
    primary key (run, config)
) without rowid;
INSERT INTO "exploration" VALUES(3,'a','{"distinct": 4, "states": 5}');
CREATE TABLE run (
    id          integer primary key,
    campaign    text not null,      -- name, as "smoke"
    target      text not null,      -- name, as "engine"
    seed        integer not null,
    trials      integer not null,   -- planned
    settings    text not null,      -- JSON: the whole campaign after --set, from which trials are drawn again
    state       text not null check (state in ('running', 'finished', 'failed')),
    seconds     real not null,      -- spent on trials so far, over all resumptions
    origin      text not null       -- JSON Origin: when, where, version, command line, hashes of the programs
);
INSERT INTO "run" VALUES(1,'smoke','engine',1,3,'{"name": "smoke"}','finished',0.0,'{"started":"2026-11-01T01:00:00+00:00","host":"host","version":"0.1.0","command":"tornpage run smoke","programs":{"engine":"b1","harness":"h"}}');
INSERT INTO "run" VALUES(2,'smoke','engine',1,3,'{"name": "smoke"}','finished',0.0,'{"started":"2026-11-02T01:00:00+00:00","host":"host","version":"0.1.0","command":"tornpage run smoke","programs":{"engine":"b2","harness":"h"}}');
INSERT INTO "run" VALUES(3,'powerloss','sqlite',7,0,'{"name": "powerloss"}','running',0.0,'{"started":"","host":"","version":"","command":"","programs":{}}');
CREATE TABLE schema_version (
    version integer not null
);
INSERT INTO "schema_version" VALUES(2);
CREATE TABLE trial (
    run         integer not null references run (id),
    number      integer not null,   -- counts from 0; "RUN.NUMBER" is the id that `tornpage replay` takes
    spec        text not null,      -- JSON TrialSpec: all that a replay needs
    config      text not null,
    site        text not null,
    mask        text not null,
    outcome     text,               -- null while it runs
    result      text,               -- JSON TrialResult without contents, null while it runs
    primary key (run, number)
) without rowid;
INSERT INTO "trial" VALUES(1,0,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":0,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','clean','{"number":0,"outcome":"clean","reason":"","violations":[],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{"dblwr_restored":1},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"a","digest":"","image":null,"torn":null,"alike":1}');
INSERT INTO "trial" VALUES(1,1,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":1,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','violation','{"number":1,"outcome":"violation","reason":"","violations":[{"invariant":5,"what":"recovery refused: torn page 3 of ibdata1: no doublewrite copy","site":"page0","path":"","source":"state"}],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"b","digest":"","image":null,"torn":{"path":"t1.ibd","offset":0,"length":1024,"sector":512,"kept":"10","old":"","new":""},"alike":40}');
INSERT INTO "trial" VALUES(1,2,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":2,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','unstable','{"number":2,"outcome":"unstable","reason":"came once","violations":[{"invariant":5,"what":"page 3 is torn","site":"page0","path":"t1.ibd","source":"state"}],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"b","digest":"","image":null,"torn":{"path":"t1.ibd","offset":0,"length":1024,"sector":512,"kept":"10","old":"","new":""},"alike":1}');
INSERT INTO "trial" VALUES(2,0,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":0,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','clean','{"number":0,"outcome":"clean","reason":"","violations":[],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{"dblwr_restored":1},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"a","digest":"","image":null,"torn":null,"alike":1}');
INSERT INTO "trial" VALUES(2,1,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":1,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','violation','{"number":1,"outcome":"violation","reason":"","violations":[{"invariant":5,"what":"recovery refused: torn page 3 of ibdata1: no doublewrite copy","site":"page0","path":"","source":"state"}],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"b","digest":"","image":null,"torn":{"path":"t1.ibd","offset":0,"length":1024,"sector":512,"kept":"10","old":"","new":""},"alike":40}');
INSERT INTO "trial" VALUES(2,2,'{"campaign":"smoke","target":"engine","config":"log_optimize_ddl=on","options":{"page_size":"4k"},"workload":"smoke","params":{},"workload_seed":1,"seed":7,"number":2,"plan":{"name":"p","run":[{"kind":"write","nth":1,"action":"kill","file":"t1.ibd","offset":null,"sector":512,"sectors":"prefix:1","bytes":null,"when":"before","error":null,"shift":null,"text":null}],"recover":[],"stale_log":false,"loss":""}}','log_optimize_ddl=on','page0','none','unstable','{"number":2,"outcome":"unstable","reason":"came once","violations":[{"invariant":5,"what":"page 3 is torn","site":"page0","path":"t1.ibd","source":"state"}],"site":"page0","mask":"","path":"","offset":null,"page_no":null,"counters":{},"seconds":{},"peak_bytes":0,"written_bytes":0,"events":0,"trace_hash":"b","digest":"","image":null,"torn":{"path":"t1.ibd","offset":0,"length":1024,"sector":512,"kept":"10","old":"","new":""},"alike":1}');
CREATE TABLE violation (
    run         integer not null references run (id),
    trial       integer not null,
    position    integer not null,
    invariant   integer not null,
    site        text,
    path        text not null,
    what        text not null,
    source      text not null,      -- state, rule or run: who says so
    primary key (run, trial, position)
) without rowid;
INSERT INTO "violation" VALUES(1,1,0,5,'page0','','recovery refused: torn page 3 of ibdata1: no doublewrite copy','state');
INSERT INTO "violation" VALUES(1,2,0,5,'page0','t1.ibd','page 3 is torn','state');
INSERT INTO "violation" VALUES(2,1,0,5,'page0','','recovery refused: torn page 3 of ibdata1: no doublewrite copy','state');
INSERT INTO "violation" VALUES(2,2,0,5,'page0','t1.ibd','page 3 is torn','state');
COMMIT;
