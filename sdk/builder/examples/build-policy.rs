//! Builds policy folders: `cargo run --release -p jackfield-builder --example build-policy -- CACHE-DIR POLICY-DIR…`

use std::path::Path;
use std::process::ExitCode;

use jackfield_builder::Builder;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(cache) = arguments.next() else {
        eprintln!("usage: build-policy CACHE-DIR POLICY-DIR…");
        return ExitCode::from(2);
    };
    let mut say = |line: &str| eprintln!("{line}");
    let builder = Builder::new(cache);
    for dir in arguments {
        match builder.build_saying(Path::new(&dir), &mut say) {
            Ok(built) => {
                println!("{} {} bytes in {} ms", built.path.display(), built.component.len(), built.millis)
            }
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
