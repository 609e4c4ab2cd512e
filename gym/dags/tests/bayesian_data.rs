//! Tests of data sets: files that are refused, networks from BIF files, and simulated models.

use gfn::Rng;
use gfn::graph::GraphState;
use gfn_dags::*;

#[test]
fn bad_tables_are_refused_with_their_line() {
    let refused = |text: &str, words: &[&str]| {
        let message = ContinuousData::from_csv(text.as_bytes()).unwrap_err().to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{text:?}: {message}");
    };
    refused("", &["line 1", "empty"]);
    refused("a,b\n", &["line 2", "no observation"]);
    refused("a,b", &["line 2", "no observation"]);
    refused("a,b\n1,2\n", &["line 2", "only one observation"]);
    refused("1,2\n3,4\n5,6\n", &["line 1", "header is missing"]);
    refused("a;b;c\n1;2;3\n4;5;6\n", &["line 1", "the separator is `;`, but must be a comma"]);
    refused("a\tb\n1\t2\n4\t5\n", &["line 1", "the separator is `tab`"]);
    refused("a,\n1,2\n2,3\n", &["line 1", "column 2 has no name"]);
    refused("a,a\n1,2\n2,3\n", &["line 1", "`a` occurs twice"]);
    refused("a,b\n1,2\n3\n", &["line 3", "1 values, but there are 2 variables"]);
    refused("a,b\n1,2,9\n3,4\n", &["line 2", "3 values, but there are 2 variables"]);
    refused("a,b\n1,2\n\n3,NaN\n", &["line 4", "`b` is missing (`NaN`)"]);
    refused("a,b\n1,2\n , 3\n", &["line 3", "`a` is missing"]);
    refused("a,b\n1,2\n3,NA\n", &["line 3", "`b`"]);
    refused("a,b\n1,2\n3,x\n", &["line 3", "`b` is `x`, which isn't a number"]);
    refused("a,b\n1,2\n3,inf\n", &["line 3", "isn't finite"]);
    refused("a,b\n1,2\n1.0,3\n", &["`a`, which is 1 in every row"]);
    let wide: Vec<String> = (0..201).map(|i| format!("v{i}")).collect();
    let row = vec!["1"; 201].join(",");
    refused(&format!("{}\n{row}\n{row}\n", wide.join(",")), &["nodes is 201", "1 to 200"]);
    assert!(ContinuousData::from_csv([b'a', 0xff, b'\n', b'1'].as_slice()).is_err());
    assert!(
        DiscreteData::from_csv("a,b\nx,y\nx,z\n".as_bytes())
            .unwrap_err()
            .to_string()
            .contains("`a`, which is x in every row")
    );
    // A label is missing if its cell is empty, NA or ?. The words of this table look like missing values, but
    // must be read as labels.
    let words = "mark,stage\nNone,.\n null ,I\nnan,II\n";
    assert_eq!(DiscreteData::from_csv(words.as_bytes()).unwrap().n_values(), [3, 3]);
    for missing in ["", "NA", "?"] {
        let text = words.replacen("None", missing, 1);
        let message = DiscreteData::from_csv(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains("line 2") && message.contains("`mark` is missing"), "{missing}: {message}");
    }
    for missing in ["None", "null", ".", "n/a"] {
        let message =
            ContinuousData::from_csv(format!("a\n1\n{missing}\n").as_bytes()).unwrap_err().to_string();
        assert!(message.contains("`a` is missing"), "{missing}: {message}");
    }
    assert!(ContinuousData::read("no/such/file.csv").unwrap_err().to_string().contains("no/such/file.csv"));
    let path = std::env::temp_dir().join(format!("gfn_bad_table_{}.csv", std::process::id()));
    std::fs::write(&path, "a,b\n1,2\n3,\n").unwrap();
    let error = ContinuousData::read(&path).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(error.starts_with(&format!("{}: line 3: the value of `b`", path.display())), "{error}");
    assert!(ContinuousData::from_rows(&[[1.0, f64::NAN]]).is_err());
    assert!(ContinuousData::from_rows::<2>(&[]).is_err());
}

#[test]
fn lines_that_are_no_header_are_named() {
    for (text, words) in [
        ("sep=,\na,b\n1,2\n3,4\n", "`sep=`, is for spreadsheets: remove it"),
        ("SEP=;\na;b\n1;2\n3;4\n", "`sep=`, is for spreadsheets: remove it"),
        ("# from an experiment\na,b\n1,2\n3,4\n", "`# from an experiment` is a comment: remove it"),
        ("# of 2025, twice, by hand\na,b\n1,2\n3,4\n", "`# of 2025` is a comment: remove it"),
        ("% x\na,b\n1,2\n3,4\n", "`% x` is a comment: remove it"),
        ("a b\n1 2\n3 4\n", "one name, `a b`: the separator is `blank`, but must be a comma"),
        ("\"Raf\" \"Mek\"\n26.4 13.2\n35.9 16.5\n", "the separator is `blank`"),
        ("a  b   c\n1  2   3\n3  4   5\n", "the separator is `blank`"),
        ("a b\n1,5 2,5\n3,5 4\n", "the separator is `blank`"),
    ] {
        let continuous = ContinuousData::from_csv(text.as_bytes()).unwrap_err().to_string();
        let discrete = DiscreteData::from_csv(text.as_bytes()).unwrap_err().to_string();
        for message in [continuous, discrete] {
            assert!(message.contains("line 1") && message.contains(words), "{text:?}: {message}");
        }
    }
    let names = ["raf", "mek"].map(String::from);
    let message = named_edges("cause;effect\nraf;mek\n".as_bytes(), &names).unwrap_err().to_string();
    assert!(message.contains("the separator is `;`"), "{message}");
    // Names of columns may contain blanks and characters such as `#`, if each row has as many cells as the
    // header.
    let data = ContinuousData::from_csv("dose in mg,# cells\n1,2\n3,5\n".as_bytes()).unwrap();
    assert_eq!(data.names(), ["dose in mg", "# cells"]);
    assert_eq!(ContinuousData::from_csv("dose in mg\n1\n3\n".as_bytes()).unwrap().names(), ["dose in mg"]);
    assert_eq!(ContinuousData::from_csv("#a,b\n1,2\n3,4\n".as_bytes()).unwrap().names(), ["#a", "b"]);
}

#[test]
fn byte_order_marks_are_skipped() {
    for header in ["a,b", "\"a\",\"b\""] {
        let text = format!("\u{feff}{header}\n1,2\n3,4\n");
        assert_eq!(ContinuousData::from_csv(text.as_bytes()).unwrap().names(), ["a", "b"]);
        assert_eq!(DiscreteData::from_csv(text.as_bytes()).unwrap().names(), ["a", "b"]);
    }
    let names = ["raf", "mek"].map(String::from);
    assert_eq!(named_edges("\u{feff}cause,effect\nraf,mek\n".as_bytes(), &names).unwrap(), [(0, 1)]);
    let marked = format!("\u{feff}{}", NETWORK.trim_start());
    assert_eq!(DiscreteNetwork::from_bif(&marked).unwrap(), DiscreteNetwork::from_bif(NETWORK).unwrap());
}

#[test]
fn tables_are_read() {
    let data = ContinuousData::from_csv("\"x, 1\" ,y\r\n 1, 2\r\n-3.5,1e2\r\n".as_bytes()).unwrap();
    assert_eq!(data.names(), ["x, 1", "y"]);
    assert_eq!((data.row(0), data.row(1)), ([1.0, 2.0].as_slice(), [-3.5, 100.0].as_slice()));
    let discrete = DiscreteData::from_csv("dose,result\n10,bad\n2,good\n10,good\n".as_bytes()).unwrap();
    // Labels that are numbers are sorted by value, other labels alphabetically.
    assert_eq!((discrete.label(0, 0), discrete.label(0, 1), discrete.label(1, 0)), ("2", "10", "bad"));
    assert_eq!(discrete.row(0), [1, 0]);
}

#[test]
fn as_many_labels_as_rows_are_read_at_once() {
    let rows: String = (0..60_000).map(|k| format!("id{k:05},{}\n", k % 7)).collect();
    let text = format!("id,class\n{rows}");
    let began = std::time::Instant::now();
    let data = DiscreteData::from_csv(text.as_bytes()).unwrap();
    // An algorithm that searches all labels for each row would take more than ten seconds.
    assert!(began.elapsed().as_secs_f64() < 4.0, "{:?}", began.elapsed());
    assert_eq!(
        (data.row(59_999), data.n_values()),
        ([59_999, 59_999 % 7].as_slice(), [60_000, 7].as_slice())
    );
}

#[test]
fn a_column_says_what_was_set() {
    let text = "raf,who,mek\n0.5,,1\n2,raf,3\n4,mek; raf,5\n6, mek ,7\n";
    let data = ContinuousData::from_csv_with_interventions(text.as_bytes(), "who").unwrap();
    assert_eq!(
        (data.names(), data.row(2)),
        (["raf", "mek"].map(String::from).as_slice(), [4.0, 5.0].as_slice())
    );
    assert_eq!(data.interventions().unwrap(), [0, 0b01, 0b11, 0b10].map(NodeSet::from_bits));
    let words = DiscreteData::from_csv_with_interventions(text.as_bytes(), "who").unwrap();
    assert_eq!((words.interventions(), words.label(1, 3)), (data.interventions(), "7"));
    // Cells may be empty only in the column of interventions, and the data must have a column of the given
    // name.
    let refused = |text: &str, column: &str, words: &str| {
        let message =
            ContinuousData::from_csv_with_interventions(text.as_bytes(), column).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
        assert!(DiscreteData::from_csv_with_interventions(text.as_bytes(), column).is_err());
    };
    refused(text, "set", "there is no column `set`");
    refused("raf,who\n,\n1,\n", "who", "the value of `raf` is missing");
    refused("raf,who\n1,erk\n2,\n", "who", "line 2: the column `who` names `erk`, which isn't a variable");
    refused("raf,who\n1,who\n2,\n", "who", "which isn't a variable");
    refused("who\n\nraf\nraf\n", "who", "1 to 200");
}

#[test]
fn values_of_any_size_are_standardised() {
    let column = [1.0, -2.0, 4.5, 0.25];
    let standard = |unit: f64| {
        let rows: Vec<[f64; 1]> = column.iter().map(|x| [x * unit]).collect();
        ContinuousData::from_rows(&rows).unwrap().standardised().unwrap().column(0)
    };
    let expected = standard(1.0);
    assert!((expected.iter().map(|x| x * x).sum::<f64>() - 3.0).abs() < 1e-12);
    // Multiplying the data by a power of two changes no digit, so the standardised data must be equal to the
    // last bit. For other factors they must be nearly equal.
    for exponent in [-1060, -700, -30, 40, 700, 1020] {
        // The power is computed as a product of two factors, because a single power may underflow.
        let unit = 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
        assert_eq!(standard(unit), expected, "2^{exponent}");
    }
    for unit in [1e-200, 1e200, 3e307] {
        let gap = standard(unit).iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(gap < 1e-14, "{unit}: {gap}");
    }
    // The squares of such large numbers overflow in scores. The error must advise to standardise the data.
    let rows: Vec<[f64; 1]> = column.iter().map(|x| [x * 1e200]).collect();
    let large = ContinuousData::from_rows(&rows).unwrap();
    for error in
        [Bge::new(&large, BgeConfig::default()).unwrap_err(), LinearGaussianBic::new(&large).unwrap_err()]
    {
        assert!(error.to_string().contains("standardise"), "{error}");
    }
}

#[test]
fn data_are_prepared() {
    let data = ContinuousData::from_rows(&[[1.0, 10.0], [2.0, 10.0], [3.0, 30.0], [4.0, 1000.0]]).unwrap();
    let standard = data.map(f64::ln).unwrap().standardised().unwrap();
    for variable in 0..2 {
        let column = standard.column(variable);
        assert!(column.iter().sum::<f64>().abs() < 1e-12);
        assert!((column.iter().map(|x| x * x).sum::<f64>() - 3.0).abs() < 1e-12);
    }
    let cut = data.discretised(2).unwrap();
    assert_eq!((0..4).map(|row| cut.row(row).to_vec()).collect::<Vec<_>>(), [[0, 0], [0, 0], [1, 1], [1, 1]]);
    assert!(data.map(|x| (x - 1.0).ln()).is_err());
    assert!(data.discretised(1).is_err() && data.discretised(5).is_err());
    // In a column with at most three distinct values, each value must become a level, however rare it is. The
    // third column has six values, so its three levels must have equal numbers of observations.
    let coded = [
        [0.0, 5.0, 0.5],
        [1.0, 7.0, 0.6],
        [1.0, 7.0, 0.7],
        [1.0, 9.0, 0.8],
        [1.0, 9.0, 0.9],
        [1.0, 9.0, 1.0],
    ];
    let coded = ContinuousData::from_rows(&coded).unwrap().discretised(3).unwrap();
    assert_eq!(coded.n_values(), [2, 3, 3]);
    let column = |variable: usize| (0..6).map(|row| coded.row(row)[variable]).collect::<Vec<_>>();
    assert_eq!(
        [column(0), column(1), column(2)],
        [[0, 1, 1, 1, 1, 1], [0, 1, 1, 2, 2, 2], [0, 0, 1, 1, 2, 2]]
    );
    assert_eq!((coded.label(1, 2), coded.label(2, 2)), ("9", "2"));
    // Half of all values are equal and lie in the lowest level. The second of the four levels is therefore
    // empty and must not be counted.
    let gap = ContinuousData::new(vec!["x".into()], vec![0.0, 0.0, 0.0, 0.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    assert_eq!(gap.discretised(4).unwrap().n_values(), [3]);
    let top = ContinuousData::new(vec!["x".into()], vec![1.0, 2.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0]).unwrap();
    assert!(top.discretised(2).unwrap_err().to_string().contains("`x`"), "all in one level");
    let constant = ContinuousData::from_rows(&[[1.0, 2.0], [1.0, 3.0]]).unwrap();
    assert!(constant.discretised(2).unwrap_err().to_string().contains("`x0`"));
    assert!(constant.standardised().unwrap_err().to_string().contains("`x0`"));
    assert!(data.clone().with_interventions(vec![NodeSet::EMPTY; 3]).is_err());
    assert!(data.with_interventions(vec![NodeSet::EMPTY.with(2); 4]).is_err());
}

#[test]
fn known_edges_need_a_header() {
    let names = ["raf", "mek", "erk"].map(String::from);
    assert_eq!(named_edges("cause,mek\nraf,mek\n".as_bytes(), &names).unwrap(), [(0, 1)]);
    let message = named_edges("raf,mek\nmek,erk\n".as_bytes(), &names).unwrap_err().to_string();
    assert!(message.contains("line 1") && message.contains("header"), "{message}");
}

/// A BIF network with parents that aren't in the order of variables, a table given row by row, tables given
/// as one list, a default row, properties, comments, and values that look like numbers.
const NETWORK: &str = r#"
network unknown { property "a net"; }
// the root comes last
variable C { type discrete [ 3 ] { <5, 5-9, >=10 }; property position = (1, 2); }
variable A { type discrete [2] { yes, no }; }
variable B { type discrete [ 2 ] { yes, no }; }
probability ( C | B, A ) {
  (yes, yes) 0.1, 0.2, 0.7;
  (no, yes) 0.5, 0.25, 0.25; /* two
  lines */
  default 0.0, 0.0, 1.0;
}
probability ( A ) { table 0.25, 0.75; }
probability ( B | A ) { table 0.9, 0.4, 0.1, 0.6; }
"#;

#[test]
fn networks_are_read() {
    let network = DiscreteNetwork::from_bif(NETWORK).unwrap();
    assert_eq!(network.names(), ["C", "A", "B"]);
    assert_eq!(network.labels()[0], ["<5", "5-9", ">=10"]);
    assert_eq!(network.dag().edges().collect::<Vec<_>>(), [(1, 0), (1, 2), (2, 0)]);
    // The network has p(B = yes | A = no) = 0.4. The row p(C | B = no, A = yes) must be the second of C's
    // table, although the network lists the parents in another order.
    assert_eq!(network.probs(2, &[0, 1, 0]), [0.4, 0.6]);
    assert_eq!(network.probs(0, &[0, 0, 1]), [0.5, 0.25, 0.25]);
    assert_eq!(network.probs(0, &[0, 1, 0]), [0.0, 0.0, 1.0]);
    assert!((network.log_prob(&[2, 0, 0]) - (0.25f64 * 0.9 * 0.7).ln()).abs() < 1e-12);
}

#[test]
fn bad_networks_are_refused_with_their_line() {
    let refused = |from: &str, to: &str, words: &str| {
        assert!(NETWORK.contains(from));
        let message = DiscreteNetwork::from_bif(&NETWORK.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    refused("[ 3 ]", "[ 4 ]", "line 4: `C` announces");
    refused("(no, yes)", "(maybe, yes)", "line 9: `B` has no value `maybe`");
    refused("(no, yes)", "(no)", "1 values, but there are 2 parents");
    refused("0.5, 0.25, 0.25", "0.5, 0.5", "`C` has 2 probabilities here, but needs 3");
    refused("0.5, 0.25", "0.5, x", "`x` isn't a probability");
    refused("0.5, 0.25", "0.9, 0.25", "that sum to 1");
    refused("default 0.0, 0.0, 1.0;", "", "rows without probabilities");
    refused("table 0.25, 0.75", "table 0.25", "`A` has 1 probabilities here, but needs 2");
    refused("( C | B, A )", "( C | B, D )", "there is no variable `D`");
    refused("probability ( A ) { table 0.25, 0.75; }", "", "`A` has no table");
    refused("probability ( A )", "probability ( B )", "`B` has two tables");
    refused("variable A", "variable C", "variable `C` is declared twice");
    refused("{ yes, no }; }\nprobability", "{ yes, yes }; }\nprobability", "twice");
    refused(
        "probability ( A ) { table 0.25, 0.75; }",
        "probability ( A | C ) { default 0.5, 0.5; }",
        "cycle",
    );
    refused("}\nprobability ( A )", "probability ( A )", "`probability` was found in the table");
    refused("network unknown", "netwerk unknown", "`netwerk` was found instead of a variable");
    for cut in (0..NETWORK.len() - 2).step_by(7) {
        assert!(DiscreteNetwork::from_bif(&NETWORK[..cut]).is_err() || cut < 3, "cut at {cut}");
    }
}

#[test]
fn rows_that_a_network_gives_twice_are_refused() {
    let refused = |from: &str, to: &str, words: &str| {
        assert!(NETWORK.contains(from));
        let message = DiscreteNetwork::from_bif(&NETWORK.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    let row = "(yes, yes) 0.1, 0.2, 0.7;";
    let words = "line 9: the table of `C` gives the row (yes, yes) twice";
    refused(row, &format!("{row}\n{row}"), words);
    // Two rows for the same values of the parents are refused, also if their numbers differ, if they aren't
    // adjacent, or if they follow the default row.
    refused("(no, yes)", "(yes, yes)", words);
    let late = format!("default 0.0, 0.0, 1.0; {row}");
    refused("default 0.0, 0.0, 1.0;", &late, "the row (yes, yes) twice");
    refused(
        "default 0.0, 0.0, 1.0;",
        "default 0.0, 0.0, 1.0; default 0.5, 0.5, 0.0;",
        "`C` gives its default twice",
    );
    refused("table 0.25, 0.75;", "table 0.25, 0.75; table 0.5, 0.5;", "`A` gives some rows twice");
    refused(
        "table 0.9, 0.4, 0.1, 0.6;",
        "(yes) 0.9, 0.1; table 0.9, 0.4, 0.1, 0.6;",
        "`B` gives some rows twice",
    );
    refused(
        "table 0.9, 0.4, 0.1, 0.6;",
        "table 0.9, 0.4, 0.1, 0.6; (yes) 0.9, 0.1;",
        "`B` gives the row (yes) twice",
    );
    // A default row that comes before the other rows must have the same effect as one that comes after them.
    let first = NETWORK.replacen("default 0.0, 0.0, 1.0;", "", 1);
    let first = first.replacen(row, &format!("default 0.0, 0.0, 1.0; {row}"), 1);
    assert_eq!(DiscreteNetwork::from_bif(&first).unwrap(), DiscreteNetwork::from_bif(NETWORK).unwrap());
}

#[test]
fn networks_of_too_many_variables_are_refused_in_one_sentence() {
    let variable = |k: usize| format!("variable v{k} {{ type discrete [ 2 ] {{ variable, b }}; }}\n");
    let table = |k: usize| format!("probability ( v{k} ) {{ table 0.5, 0.5; }}\n");
    let network = |n: usize| (0..n).map(variable).chain((0..n).map(table)).collect::<String>();
    assert_eq!(DiscreteNetwork::from_bif(&network(200)).unwrap().names().len(), 200);
    for text in [network(223), (0..223).map(|k| variable(k) + &table(k)).collect()] {
        let message = DiscreteNetwork::from_bif(&text).unwrap_err().to_string();
        assert!(message.contains("the number of variables of the network is 223"), "{message}");
        assert!(message.contains("at most 200") && !message.contains("values"), "{message}");
    }
    let one = "variable v { type discrete [ 1 ] { a }; } probability ( v ) { table 1.0; }";
    let message = DiscreteNetwork::from_bif(one).unwrap_err().to_string();
    assert!(message.contains("`v` has 1 values, but needs at least 2"), "{message}");
    assert!(!message.contains("200"), "{message}");
}

#[test]
fn samples_of_a_network_have_its_probabilities() {
    let network = DiscreteNetwork::from_bif(NETWORK).unwrap();
    let data = network.sample(4000, &mut Rng::seeded(0)).unwrap();
    let share =
        |a: u16, b: u16| (0..4000).filter(|&row| data.row(row)[1..] == [a, b]).count() as f64 / 4000.0;
    for (a, b, p) in [(0, 0, 0.225), (0, 1, 0.025), (1, 0, 0.3), (1, 1, 0.45)] {
        assert!((share(a, b) - p).abs() < 0.03, "{a} {b}");
    }
    let set = network.sample_do(500, &[(2, 1)], &mut Rng::seeded(1)).unwrap();
    assert!((0..500).all(|row| set.row(row)[2] == 1 && set.interventions().unwrap()[row].contains(2)));
    // If a variable is set by an intervention, it carries no information on its causes, so they keep their
    // marginal probabilities.
    let yes = (0..500).filter(|&row| set.row(row)[1] == 0).count() as f64 / 500.0;
    assert!((yes - 0.25).abs() < 0.08, "{yes}");
    assert!(network.sample_do(5, &[(3, 0)], &mut Rng::seeded(1)).is_err());
    assert!(network.sample_do(5, &[(2, 7)], &mut Rng::seeded(1)).is_err());
}

#[test]
fn random_graphs_have_the_edges_asked_for() {
    let mut rng = Rng::seeded(0);
    let edges = |law: GraphLaw, rng: &mut Rng| law.draw(20, rng).unwrap().n_edges();
    let mean =
        (0..200).map(|_| edges(GraphLaw::ErdosRenyi { edges: 40.0 }, &mut rng) as f64).sum::<f64>() / 200.0;
    assert!((mean - 40.0).abs() < 1.5, "{mean}");
    assert_eq!(edges(GraphLaw::ErdosRenyi { edges: 190.0 }, &mut rng), 190);
    // This closure returns the largest number of children of a node, averaged over graphs. Scale-free graphs
    // have hubs, so this number must be larger for them.
    let mut hub = |law: GraphLaw| {
        let most = |graph: GraphState| (0..20).map(|node| graph.out_degree(node)).max().unwrap() as f64;
        (0..60).map(|_| most(law.draw(20, &mut rng).unwrap())).sum::<f64>() / 60.0
    };
    let even = hub(GraphLaw::ErdosRenyi { edges: 19.0 });
    let hubs = hub(GraphLaw::ScaleFree { edges_per_node: 1 });
    assert!(hubs > even + 1.0, "{hubs} {even}");
    let mut rng = Rng::seeded(1);
    assert!(GraphLaw::ErdosRenyi { edges: 191.0 }.draw(20, &mut rng).is_err());
    assert!(GraphLaw::ErdosRenyi { edges: 1.0 }.draw(0, &mut rng).is_err());
    assert!(GraphLaw::ScaleFree { edges_per_node: 3 }.draw(201, &mut rng).is_err());
}

#[test]
fn models_follow_their_mechanisms() {
    let mut rng = Rng::seeded(2);
    let dag = acyclic(3, &[(0, 2), (1, 2)]).unwrap();
    let linear =
        Sem::draw(dag.clone(), SemConfig::LinearAwayFromZero { low: 0.5, high: 2.0 }, 0.0, &mut rng).unwrap();
    let Mechanism::Linear { weights } = &linear.mechanisms()[2] else { unreachable!("it was drawn linear") };
    assert!(weights.len() == 2 && weights.iter().all(|w| (0.5..=2.0).contains(&w.abs())));
    // Without noise the value of a variable must be the weighted sum of its parents' values.
    let data = linear.sample_do(2, &[(0, 1.0), (1, -3.0)], &mut rng).unwrap();
    assert!((data.row(1)[2] - (weights[0] - 3.0 * weights[1])).abs() < 1e-12);
    let mlp = Sem::draw(dag.clone(), SemConfig::Mlp { hidden: 8 }, 0.3, &mut rng).unwrap();
    let data = mlp.sample(3000, &mut rng).unwrap();
    let column = data.column(0);
    let mean = column.iter().sum::<f64>() / 3000.0;
    let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 3000.0;
    assert!((variance.sqrt() - 0.3).abs() < 0.02, "the noise is a standard deviation: {}", variance.sqrt());
    assert!(Sem::draw(dag.clone(), SemConfig::Mlp { hidden: 0 }, 0.3, &mut rng).is_err());
    assert!(Sem::draw(dag.clone(), SemConfig::Linear, -1.0, &mut rng).is_err());
    assert!(
        Sem::draw(dag.clone(), SemConfig::LinearAwayFromZero { low: 2.0, high: 1.0 }, 0.1, &mut rng).is_err()
    );
    assert!(Sem::new(dag.clone(), vec![Mechanism::Linear { weights: vec![] }; 3], 0.1).is_err());
    let mut cyclic = dag.clone();
    cyclic.add_edge(2, 0, Default::default()).unwrap();
    assert!(Sem::draw(cyclic.clone(), SemConfig::Linear, 0.1, &mut rng).is_err());
    assert!(DiscreteNetwork::draw(cyclic, 2, &mut rng).is_err());
    assert!(DiscreteNetwork::draw(dag, 1, &mut rng).is_err());
    // Sampling with the same seed must give the same data.
    let again = |seed| linear.sample(5, &mut Rng::seeded(seed)).unwrap();
    assert_eq!(again(4), again(4));
}

#[test]
fn tables_have_one_limit_together() {
    // The network has 64 tables of 2^19 entries. Each table is within the limit of 2^24 entries, but all
    // tables together exceed it and must be refused.
    let roots = 18;
    let mut text = String::from("network wide {}\n");
    let variable = |name: &str| format!("variable {name} {{ type discrete [ 2 ] {{ a, b }}; }}\n");
    let parents: Vec<String> = (0..roots).map(|k| format!("r{k}")).collect();
    for name in &parents {
        text += &(variable(name) + &format!("probability ( {name} ) {{ table 0.5, 0.5; }}\n"));
    }
    for k in 0..64 {
        let family = format!("probability ( c{k} | {} ) {{ default 0.5, 0.5; }}\n", parents.join(", "));
        text += &(variable(&format!("c{k}")) + &family);
    }
    let message = DiscreteNetwork::from_bif(&text).unwrap_err().to_string();
    assert!(message.contains("`c31`") && message.contains("16,777,216"), "{message}");
    // In a complete graph of 24 nodes no table exceeds the limit of 2^24 entries, but all tables together
    // exceed it and must be refused.
    let edges: Vec<(u32, u32)> = (0..24).flat_map(|b| (0..b).map(move |a| (a, b))).collect();
    let complete = acyclic(24, &edges).unwrap();
    let message = DiscreteNetwork::draw(complete, 2, &mut Rng::seeded(0)).unwrap_err().to_string();
    assert!(message.contains("in all"), "{message}");
}
