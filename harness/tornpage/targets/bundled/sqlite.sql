-- The work of sqlite-3.7.2.toml: a line is one commit.
BEGIN; CREATE TABLE t1 (id INTEGER PRIMARY KEY, a INTEGER, b TEXT); CREATE INDEX t1a ON t1 (a); COMMIT
BEGIN; INSERT INTO t1 VALUES (1, 10, 'a'); INSERT INTO t1 VALUES (2, 20, 'b'); INSERT INTO t1 VALUES (3, 30, 'c'); COMMIT
INSERT INTO t1 SELECT id + 3, a + 1, b || hex(zeroblob(200)) FROM t1
INSERT INTO t1 SELECT id + 6, a + 2, b || hex(zeroblob(300)) FROM t1
INSERT INTO t1 SELECT id + 12, a + 3, b || 'x' FROM t1
INSERT INTO t1 SELECT id + 24, a + 4, b || 'y' FROM t1
UPDATE t1 SET a = a + 1 WHERE id % 3 = 0
DELETE FROM t1 WHERE id % 7 = 1
CREATE TABLE t2 (id INTEGER PRIMARY KEY, b TEXT)
INSERT INTO t2 SELECT id, b FROM t1
UPDATE t2 SET b = b || 'z' WHERE id % 2 = 0
UPDATE t1 SET a = 96 - a
INSERT INTO t2 SELECT id + 100, b FROM t1 WHERE id < 30
UPDATE t1 SET a = a + 5 WHERE id % 4 = 0
DELETE FROM t2 WHERE id % 5 = 2
UPDATE t1 SET b = 'new' || b WHERE id < 20
INSERT INTO t1 VALUES (500, 1, 'one')
INSERT INTO t1 VALUES (501, 2, 'two')
UPDATE t2 SET b = substr(b, 1, 300)
DROP INDEX t1a
CREATE INDEX t2b ON t2 (b)
UPDATE t1 SET a = a + 7 WHERE id % 6 = 1
INSERT INTO t1 VALUES (502, 3, 'three')
DELETE FROM t1 WHERE id BETWEEN 30 AND 36
UPDATE t2 SET b = b || 'w' WHERE id > 20
INSERT INTO t1 VALUES (503, 4, 'four')
