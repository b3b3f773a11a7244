//! Everything an import takes: pickle and JSON in every container, filters, salvage. A container changes no row. The first
//! byte chooses the options, the second one the container that is put round the rest.

#![no_main]

use libfuzzer_sys::fuzz_target;
use npusnap::snapshot::{Filter, Options};
use npusnap_fuzz::{read, told, wrap};

fuzz_target!(|input: &[u8]| {
    let [choice, container, bytes @ ..] = input else { return };
    let filter = Filter {
        events: if choice & 2 == 0 { "..".parse().unwrap() } else { "1..5".parse().unwrap() },
        min_size: (choice & 4 != 0).then_some(513),
        devices: if choice & 8 == 0 { vec![] } else { vec![0] },
    };
    let options = Options { salvage: choice & 1 != 0, filter, plain_loop: choice & 16 != 0 };
    let bare = read(bytes, &options);
    if let Err(error) = &bare {
        told(error);
    }
    if container % 5 == 0 {
        return;
    }
    let wrapped = read(&wrap::wrapped(bytes, *container), &options);
    if let Err(error) = &wrapped {
        told(error);
    }
    match (bare, wrapped) {
        (Ok(bare), Ok(wrapped)) => {
            for table in ["devices", "call_stacks", "segments", "blocks", "traces", "annotations"] {
                assert!(bare.tables.get(table) == wrapped.tables.get(table), "a container changes {table}");
            }
        }
        // A page has what `pickle.dumps` writes today, or JSON, and is searched for what begins like one of them.
        (Ok(_), Err(_)) if wrap::has_page(*container) && !wrap::fits_page(bytes) => {}
        (Ok(_), Err(error)) => panic!("a container cannot be read: {}", told(&error)),
        // What is no snapshot may well be a container's content and one of its own.
        (Err(_), _) => {}
    }
});
