use gfn::report::PictureSheet;
use gfn_gym::molecule::Molecule;

#[test]
fn look() {
    let all = std::fs::read_to_string("/tmp/drawtest/in.txt").unwrap();
    let mut sheet = PictureSheet::new("look", 190.0);
    for line in all.lines() {
        let (name, smiles) = line.split_once(' ').unwrap();
        let m = Molecule::from_smiles(smiles).unwrap();
        sheet = sheet.cell(m.drawing(190.0, 190.0), [name, smiles]);
    }
    sheet.write("/tmp/drawtest/out.png").unwrap();
    sheet.write("/tmp/drawtest/out.svg").unwrap();
}
