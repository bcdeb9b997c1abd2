//! A store of sled: a transaction per commit, then a flush, or with "sync=off" none, which promises less.

use sled::transaction::ConflictableTransactionError;
use stores::{Pairs, Result, Store};

struct Sled {
    database: sled::Db,
    flushed: bool,
}

fn open(folder: &str, settings: &[String]) -> Result<Sled> {
    let flushed = !settings.iter().any(|word| word == "sync=off");
    let database = sled::Config::new()
        .path(folder)
        .flush_every_ms(None)
        .open()?;
    Ok(Sled { database, flushed })
}

impl Store for Sled {
    fn commit(&mut self, pairs: &Pairs) -> Result<()> {
        self.database
            .transaction(|tree| {
                for (key, value) in pairs {
                    tree.insert(&key[..], &value[..])?;
                }
                Ok::<(), ConflictableTransactionError<()>>(())
            })
            .map_err(|error| format!("{error:?}"))?;
        if self.flushed {
            self.database.flush()?;
        }
        Ok(())
    }

    fn pairs(&mut self) -> Result<Pairs> {
        let mut pairs = Pairs::new();
        for pair in self.database.iter() {
            let (key, value) = pair?;
            pairs.insert(key.to_vec(), value.to_vec());
        }
        Ok(pairs)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.database.get(key)?.map(|value| value.to_vec()))
    }
}

fn main() {
    stores::main(open)
}
