-- The work of postgresql.toml: a line is one commit.
CREATE TABLE t1 (id int PRIMARY KEY, a int, b text)
INSERT INTO t1 SELECT i, i * 31 % 97, repeat(md5(i::text), 4) FROM generate_series(1, 600) i
CREATE INDEX t1a ON t1 (a)
CHECKPOINT
BEGIN; UPDATE t1 SET a = a + 1 WHERE id % 3 = 0; DELETE FROM t1 WHERE id % 7 = 1; COMMIT
CHECKPOINT
UPDATE t1 SET b = repeat(md5((id + 5)::text), 5) WHERE id BETWEEN 40 AND 260
CREATE TABLE t2 AS SELECT i AS id, md5(i::text) AS b FROM generate_series(1, 1500) i
CREATE UNIQUE INDEX t2id ON t2 (id)
CHECKPOINT
UPDATE t2 SET b = 'x' || b WHERE id % 50 = 2
INSERT INTO t1 SELECT i, i % 97, md5(i::text) FROM generate_series(1000, 1200) i
CHECKPOINT
UPDATE t1 SET a = a + 1 WHERE id % 40 = 3
VACUUM FULL t1
ALTER TABLE t2 RENAME TO t3
TRUNCATE t3
INSERT INTO t3 SELECT id, b FROM t1 WHERE id < 300
DROP TABLE t3
UPDATE t1 SET a = 96 - a WHERE id % 4 = 0
CHECKPOINT
DELETE FROM t1 WHERE id % 5 = 2
