-- The work of mariadb-10.2 and 10.5: as mariadb.sql, without a checkpoint on demand. A line is one commit (a transaction, or a DDL statement).
-- Each 256 numbers of transactions 10.2 writes a higher one into TRX_SYS.
INSERT INTO t1 SELECT seq, seq * 31 % 97, REPEAT(SHA1(seq), 4) FROM seq_151_to_300
ALTER TABLE t2 ADD INDEX ia (a)
BEGIN; UPDATE t1 SET a = a + 1 WHERE id % 3 = 0; DELETE FROM t1 WHERE id % 7 = 1; COMMIT
BEGIN; UPDATE t2 SET a = a + 5 WHERE id % 50 = 1; INSERT INTO t1 VALUES (1001, 5, 'x'); COMMIT
300 TIMES BEGIN; UPDATE t1 SET a = a + 1 WHERE id = 9; ROLLBACK
ALTER TABLE t2 FORCE
UPDATE t1 SET b = REPEAT(SHA1(id + 5), 4), a = 96 - a WHERE id BETWEEN 40 AND 260
ALTER TABLE t2 DROP INDEX ia, ADD INDEX ib (b, a)
DELETE FROM t2 WHERE id % 5 = 2
ALTER TABLE t1 ADD COLUMN c INT NOT NULL DEFAULT 7
INSERT INTO t1 SELECT seq, seq % 97, SHA1(seq), seq FROM seq_2000_to_2100
CREATE TABLE t3 (id INT NOT NULL PRIMARY KEY, a INT, KEY (a)) ENGINE=InnoDB
INSERT INTO t3 SELECT id, a FROM t1
ALTER TABLE t1 FORCE
UPDATE t2 SET c = SHA1(id) WHERE id % 11 = 0
ALTER TABLE t2 ADD INDEX ic (c)
TRUNCATE TABLE t3
INSERT INTO t3 SELECT id, a FROM t1 WHERE id < 100
RENAME TABLE t3 TO t4
UPDATE t1 SET a = a + 1 WHERE id < 150
INSERT INTO t1 VALUES (3000, 1, 'the end', 0)
