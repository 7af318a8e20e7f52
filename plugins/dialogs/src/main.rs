//! Prints the figures, and what went wrong in the half that rules are written by: `cargo run --release -p dialogs`.

fn main() -> Result<(), String> {
    let figures = dialogs::figures::measure()?;
    figures.notes.iter().for_each(|note| println!("{note}"));
    println!("\n{figures}");
    Ok(())
}
