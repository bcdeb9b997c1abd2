//! A store of redb: DIR/main.redb, with its default durability, or with "sync=off" in a file that is never synced,
//! which promises less.

use redb::backends::FileBackend;
use redb::{Database, ReadableTable, StorageBackend, TableDefinition, TableError};
use std::fs::OpenOptions;
use std::io;
use stores::{Pairs, Result, Store};

const PAIRS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("pairs");

/// Says that it has synced.
#[derive(Debug)]
struct Unsynced(FileBackend);

impl StorageBackend for Unsynced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.0.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

struct Redb(Database);

fn open(folder: &str, settings: &[String]) -> Result<Redb> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = FileBackend::new(options.open(format!("{folder}/main.redb"))?)?;
    let builder = Database::builder();
    let mut database = if settings.iter().any(|word| word == "sync=off") {
        builder.create_with_backend(Unsynced(file))?
    } else {
        builder.create_with_backend(file)?
    };
    database.check_integrity()?;
    Ok(Redb(database))
}

impl Store for Redb {
    fn commit(&mut self, pairs: &Pairs) -> Result<()> {
        let write = self.0.begin_write()?;
        {
            let mut table = write.open_table(PAIRS)?;
            for (key, value) in pairs {
                table.insert(&key[..], &value[..])?;
            }
        }
        Ok(write.commit()?)
    }

    fn pairs(&mut self) -> Result<Pairs> {
        let read = self.0.begin_read()?;
        let table = match read.open_table(PAIRS) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(Pairs::new()),
            table => table?,
        };
        let mut pairs = Pairs::new();
        for pair in table.iter()? {
            let (key, value) = pair?;
            pairs.insert(key.value().to_vec(), value.value().to_vec());
        }
        Ok(pairs)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.0.begin_read()?.open_table(PAIRS) {
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            table => Ok(table?.get(key)?.map(|value| value.value().to_vec())),
        }
    }
}

fn main() {
    stores::main(open)
}
