//! Tests of written files. SVG is tested in every build, and PNG only with the feature `png`.

use gfn_plot::{Canvas, Colour, Page, Table, TextAnchor};

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("gfn-plot-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn canvas_with_text() -> Canvas {
    let mut canvas = Canvas::new(20.0, 10.0);
    canvas.text((10.0, 5.0), "a < b & c", 8.0, Colour::INK, TextAnchor::Middle);
    canvas
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    let refused = |canvas: &Canvas, problem: &str| {
        let message = canvas.write("not-written.svg").unwrap_err().to_string();
        assert!(message.contains(problem), "{message}");
    };
    refused(&Canvas::new(f64::NAN, 10.0), "NaN x 10 units");
    refused(&Canvas::new(10.0, f64::INFINITY), "10 x inf units");
    refused(&Canvas::new(10.0, 1e6), "too large");
    let draw: [fn(&mut Canvas); 6] = [
        |canvas| canvas.line(vec![(f64::NAN, 0.0), (f64::NAN, 10.0)], Colour::INK, 1.0),
        |canvas| canvas.line(vec![(0.0, 0.0), (5.0, 5.0)], Colour::INK, f64::NAN),
        |canvas| canvas.area(vec![(0.0, 0.0), (5.0, f64::INFINITY), (5.0, 0.0)], Colour::INK),
        |canvas| canvas.disc((f64::NAN, 0.0), 1.0, Colour::INK),
        |canvas| canvas.disc((5.0, 5.0), f64::INFINITY, Colour::INK),
        |canvas| canvas.text((5.0, 5.0), "a", f64::NAN, Colour::INK, TextAnchor::Left),
    ];
    for shape in draw {
        let mut canvas = Canvas::new(10.0, 10.0);
        shape(&mut canvas);
        refused(&canvas, "isn't finite");
    }
}

#[test]
fn the_extension_chooses_and_others_are_refused() {
    let folder = folder("canvas");
    canvas_with_text().write(folder.join("a.SVG")).unwrap();
    let svg = std::fs::read_to_string(folder.join("a.SVG")).unwrap();
    assert!(svg.starts_with("<svg width=\"20\" height=\"10\" viewBox=\"0 0 20 10\""), "{svg}");
    assert!(svg.contains("a &lt; b &amp; c") && svg.trim_end().ends_with("</svg>"), "{svg}");
    for name in ["a.jpg", "a"] {
        let message = canvas_with_text().write(folder.join(name)).unwrap_err().to_string();
        assert!(message.contains(".svg or .png"), "{message}");
    }
    let missing = canvas_with_text().write(folder.join("none/a.svg")).unwrap_err();
    assert!(matches!(missing, gfn::Error::Io { .. }), "{missing}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(not(feature = "png"))]
#[test]
fn png_without_its_feature_says_what_to_do() {
    let message = canvas_with_text().write("not-written.png").unwrap_err().to_string();
    assert!(message.contains("feature `png`"), "{message}");
}

#[cfg(feature = "png")]
#[test]
fn a_png_has_two_pixels_per_unit_and_letters() {
    let folder = folder("png");
    canvas_with_text().write(folder.join("a.PNG")).unwrap();
    let png = std::fs::read(folder.join("a.PNG")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    // Bytes 16 to 24 of a PNG file hold the width and the height in pixels.
    assert_eq!(png[16..24], [0, 0, 0, 40, 0, 0, 0, 20]);
    // The file must be larger than that of a white picture. This shows that the letters are drawn.
    Canvas::new(20.0, 10.0).write(folder.join("white.png")).unwrap();
    assert!(png.len() > std::fs::read(folder.join("white.png")).unwrap().len() + 100);
    let mut large = Canvas::new(16_000.0, 16_000.0);
    large.disc((1.0, 1.0), 1.0, Colour::INK);
    assert!(large.write(folder.join("b.png")).unwrap_err().to_string().contains("write it as SVG"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn pages_escape_texts_and_contain_pictures_without_declarations() {
    let svg = r#"<?xml version="1.0"?><!-- x --><svg xmlns="http://www.w3.org/2000/svg"><g/></svg>"#;
    let page = Page::new("a < b")
        .heading("\"x\" & y")
        .text("<script>alert(1)</script>")
        .table(&Table::new(["p & q", "r"]).row(["</td>".into(), 0.5.into()]))
        .picture(svg)
        .to_html();
    assert!(page.contains("<title>a &lt; b</title>") && page.contains("<h1>a &lt; b</h1>"));
    assert!(page.contains("<h2>&quot;x&quot; &amp; y</h2>"));
    assert!(page.contains("<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>") && !page.contains("<script"));
    assert!(page.contains("<th>p &amp; q</th>") && page.contains("<td>&lt;/td&gt;</td>"));
    assert!(!page.contains("<?xml") && page.matches("<svg").count() == 1 && page.contains("<g/></svg>"));
    let path = folder("page").join("page.html");
    Page::new("a < b").write(&path).unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), Page::new("a < b").to_html());
}
