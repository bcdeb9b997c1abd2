//! What the Rust programs of bundled targets share: the work, the marks of a run, and the answers of a recovery.
//!
//!     PROGRAM run DIR [SETTING ...]
//!     PROGRAM recover
//!
//! A program never closes a store: it ends as a kill would end it.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::ffi::{c_char, c_void};
use std::io::{self, BufRead, Read, Write};
use std::mem::{self, ManuallyDrop};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::exit;
use std::ptr;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;
pub type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

const COMMITS: usize = 40;
/// Of one commit.
const KEYS: usize = 6;

/// A store of keys and values.
pub trait Store {
    /// Makes all these pairs durable at once.
    fn commit(&mut self, pairs: &Pairs) -> Result<()>;
    /// All that it has; what its own check finds is an error.
    fn pairs(&mut self) -> Result<Pairs>;
    /// The value of a key, if it is there.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>>;
}

/// A program. `open` opens a store in a folder, as after a crash, with the settings of the command line.
pub fn main<S: Store>(open: impl Fn(&str, &[String]) -> Result<S>) -> ! {
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some("run") if words.len() > 1 => open(&words[1], &words[2..]).and_then(run),
        Some("recover") => recover(open),
        _ => Err("run DIR [SETTING ...], or recover".into()),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        exit(1);
    }
    exit(0);
}

/// Commits of several pairs, again and again. Values grow, so that commits make files grow.
fn run<S: Store>(store: S) -> Result<()> {
    let mut store = ManuallyDrop::new(store);
    tell(&mut *store, 0, "ready")?;
    for number in 1..=COMMITS {
        mark(&format!("issue n={number}"))?;
        let pairs = (0..KEYS)
            .map(|place| {
                let value = format!("{number:08}{}", "x".repeat(number * 40 + place));
                (key_of(number * 5 + place * 3), value.into_bytes())
            })
            .collect();
        store.commit(&pairs)?;
        tell(&mut *store, number, &format!("ack n={number}"))?;
    }
    Ok(())
}

fn key_of(number: usize) -> Vec<u8> {
    format!("key{:02}", number % COMMITS).into_bytes()
}

/// Prints the state behind a commit, then marks it.
fn tell(store: &mut impl Store, number: usize, text: &str) -> Result<()> {
    println!("{{\"n\": {number}, \"state\": {}}}", state_of(store)?);
    mark(text)
}

/// A line for each pair: of a value its beginning, which says of which commit it is, its length and its checksum. A
/// key of the work that is asked for is found as a walk finds it: else a line says so, which no state of a run has.
fn state_of(store: &mut impl Store) -> Result<String> {
    let pairs = store.pairs()?;
    let mut lines: Vec<String> = pairs
        .iter()
        .map(|(key, value)| {
            let begin = &value[..value.len().min(8)];
            format!(
                "{} {} {} {:08x}\n",
                key.escape_ascii(),
                begin.escape_ascii(),
                value.len(),
                crc32fast::hash(value)
            )
        })
        .collect();
    for key in (0..COMMITS).map(key_of) {
        if store.get(&key)?.as_ref() != pairs.get(&key) {
            lines.push(format!("{} is another when it is asked for\n", key.escape_ascii()));
        }
    }
    Ok(format!("{{\"pairs\": {}}}", quoted(&lines.concat())))
}

/// As JSON has a text.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if (letter as u32) < 0x20 => out += &format!("\\u{:04x}", letter as u32),
            letter => out.push(letter),
        }
    }
    out + "\""
}

extern "C" {
    fn dlsym(handle: *const c_void, name: *const c_char) -> *const c_void;
}

/// Is done when the mark is in the recorded stream. Without a recorder it does nothing.
fn mark(text: &str) -> Result<()> {
    if let Ok(name) = env::var("TORNPAGE_CONTROL") {
        let mut socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        socket.write_all(format!("{text}\n").as_bytes())?;
        return Ok(socket.read_exact(&mut [0; 3])?);
    }
    // SAFETY: the preloaded recorder has this function, with this type.
    unsafe {
        let found = dlsym(ptr::null(), c"tp_trace_mark".as_ptr());
        if !found.is_null() {
            let trace: extern "C" fn(*const u8, usize) = mem::transmute(found);
            trace(text.as_ptr(), text.len());
        }
    }
    Ok(())
}

/// Answers for each folder whose path is a line of standard input.
fn recover<S: Store>(open: impl Fn(&str, &[String]) -> Result<S>) -> Result<()> {
    for folder in io::stdin().lock().lines() {
        let folder = folder?;
        let found = open(&folder, &[]).and_then(|store| state_of(&mut *ManuallyDrop::new(store)));
        match found {
            Ok(state) => println!("{{\"ok\": true, \"state\": {state}}}"),
            Err(error) => {
                let message = quoted(&error.to_string().replace(&folder, "DIR"));
                println!("{{\"ok\": false, \"message\": {message}}}");
            }
        }
    }
    Ok(())
}
