//! Tests of scores of graphs: comparison with golden numbers, equal scores of Markov-equivalent graphs, and
//! interventions.

use std::collections::BTreeMap;

use gfn::Rng;
use gfn::env::{Direction, DiscreteEnv, Env, Reward, Rows, Slots};
use gfn::graph::GraphState;
use gfn_dags::*;
use serde_json::Value;

fn golden() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("golden/dag_bge.json")).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn data_of(case: &Value) -> ContinuousData {
    let d = case["d"].as_u64().unwrap() as usize;
    let values = case["data"].as_array().unwrap().iter().flat_map(numbers).collect();
    ContinuousData::new((0..d).map(|i| format!("v{i}")).collect(), values).unwrap()
}

fn edges_of(value: &Value) -> Vec<(u32, u32)> {
    let pair = |edge: &Value| (edge[0].as_u64().unwrap() as u32, edge[1].as_u64().unwrap() as u32);
    value.as_array().unwrap().iter().map(pair).collect()
}

fn close(got: f64, expected: f64, what: &str) {
    assert!((got - expected).abs() < 1e-8, "{what}: {got}, expected {expected}");
}

fn check_pairs(matrix: &PairMatrix, expected: &Value, what: &str) {
    for (a, row) in expected.as_array().unwrap().iter().enumerate() {
        for (b, value) in numbers(row).into_iter().enumerate() {
            close(matrix.get(a, b), value, &format!("{what} {a} {b}"));
        }
    }
}

#[test]
fn golden_bge() {
    let mut checked = (0, 0);
    for case in golden() {
        let name = case["name"].as_str().unwrap();
        let d = case["d"].as_u64().unwrap() as usize;
        let prior = match case["prior"].as_str().unwrap() {
            "uniform" => StructurePrior::Uniform,
            fair => {
                assert!(fair.starts_with("fair"));
                StructurePrior::Fair
            }
        };
        let bge = Bge::new(&data_of(&case), BgeConfig::default()).unwrap();
        for (i, row) in case["R"].as_array().unwrap().iter().enumerate() {
            for (j, r) in numbers(row).into_iter().enumerate() {
                close(bge.r(0)[i * d + j], r, name);
            }
        }
        for local in case["local_scores"].as_array().unwrap() {
            let node = local[0].as_u64().unwrap() as usize;
            let parents = numbers(&local[1]).into_iter().map(|parent| parent as usize).collect();
            close(bge.local_score(node, &parents), local[2].as_f64().unwrap(), name);
            checked.0 += 1;
        }
        let reward = DagReward::new(CachedScores::ahead(bge, None).unwrap(), prior).unwrap();
        let score = |edges: &Value| reward.log_joint(&acyclic(d, &edges_of(edges)).unwrap()).unwrap();
        for dag in case["dag_scores"].as_array().unwrap() {
            close(score(&dag[0]), dag[1].as_f64().unwrap(), name);
            checked.1 += 1;
        }
        close(score(&Value::Array(Vec::new())), case["log_score_empty"].as_f64().unwrap(), name);

        let env = BayesianStructure::new(StructureConfig::new(d)).unwrap();
        let posterior = ExactPosterior::enumerate(env.env(), &reward, 30_000).unwrap();
        assert_eq!(posterior.probs().len() as u64, case["n_dags"].as_u64().unwrap());
        close(posterior.log_z(), case["log_evidence"].as_f64().unwrap(), name);
        close(posterior.entropy(), case["posterior_entropy"].as_f64().unwrap(), name);
        let (top, _) = posterior.top(1).unwrap();
        let map = score(&case["map_dag"][0]);
        close(reward.log_reward(&top, None).unwrap()[0], map, name);
        let marginals = posterior.marginals().unwrap();
        close(marginals.expected_edges, case["expected_edges"].as_f64().unwrap(), name);
        check_pairs(&marginals.edge, &case["edge_marginals"], name);
        if d < 5 {
            check_pairs(&marginals.path, &case["path_marginals"], name);
            check_pairs(&marginals.markov_blanket, &case["markov_blanket_marginals"], name);
        }
        let summed = EdgeMarginals::sum(&env, &reward).unwrap();
        check_pairs(&summed.edge, &case["edge_marginals"], name);
        close(summed.log_z, case["log_evidence"].as_f64().unwrap(), name);
    }
    assert!(checked.0 > 100 && checked.1 > 60, "{checked:?}");
}

/// Returns the properties that identify a Markov equivalence class: the adjacent pairs, and the nodes with
/// two non-adjacent parents together with these parents.
fn equivalence_class(graph: &GraphState) -> Vec<(usize, usize, usize)> {
    let n = graph.n_nodes();
    let ancestry = Ancestry::from_graph(graph).unwrap();
    let adjacent = |a, b| graph.has_edge(a as u32, b as u32) || graph.has_edge(b as u32, a as u32);
    let mut out = Vec::new();
    for b in 0..n {
        out.extend((0..b).filter(|&a| adjacent(a, b)).map(|a| (a, b, n)));
        let parents: Vec<usize> = ancestry.parents(b).iter().collect();
        let pairs = parents.iter().flat_map(|&p| parents.iter().map(move |&q| (p, q)));
        out.extend(pairs.filter(|&(p, q)| p < q && !adjacent(p, q)).map(|(p, q)| (p, q, b)));
    }
    out.sort_unstable();
    out
}

#[test]
fn equivalent_graphs_score_the_same() {
    let mut rng = Rng::seeded(3);
    let dag = GraphLaw::ErdosRenyi { edges: 4.0 }.draw(4, &mut rng).unwrap();
    let data = Sem::draw(dag, SemConfig::Linear, 1.0, &mut rng).unwrap().sample(40, &mut rng).unwrap();
    let discrete = data.discretised(3).unwrap();
    let marginals = vec![vec![0.2, 0.3, 0.5], vec![0.6, 0.2, 0.2], vec![0.1, 0.1, 0.8], vec![1.0 / 3.0; 3]];
    let bde = |cells| {
        Bde::new(discrete.clone(), BdeConfig { equivalent_sample_size: 2.5, cells, ..BdeConfig::default() })
            .unwrap()
    };
    let custom = BgeConfig {
        alpha_mu: 0.7,
        alpha_w: Some(8.5),
        nu: Some(vec![0.1, -0.4, 0.0, 2.0]),
        ..BgeConfig::default()
    };
    let scores: Vec<Box<dyn LocalScore>> = vec![
        Box::new(Bge::new(&data, BgeConfig::default()).unwrap()),
        Box::new(Bge::new(&data, custom).unwrap()),
        Box::new(LinearGaussianBic::new(&data).unwrap()),
        Box::new(bde(CellPrior::Uniform)),
        Box::new(bde(CellPrior::Marginals(marginals))),
    ];
    let env = BayesianStructure::new(StructureConfig::new(4)).unwrap().into_env();
    let graph = gfn::env::StateGraph::build(&env, 1000).unwrap();
    for (k, score) in scores.iter().enumerate() {
        let mut classes: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for graph in graph.states().graphs() {
            classes.entry(equivalence_class(graph)).or_default().push(score.graph_score(graph).unwrap());
        }
        assert_eq!(classes.len(), 185, "the number of equivalence classes of four nodes");
        for (class, values) in &classes {
            assert!(
                values.iter().all(|value| (value - values[0]).abs() < 1e-9),
                "score {k}: {class:?} {values:?}"
            );
        }
        let mut firsts: Vec<f64> = classes.values().map(|values| values[0]).collect();
        firsts.sort_by(f64::total_cmp);
        firsts.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
        assert!(firsts.len() > 150, "score {k} tells {} classes apart", firsts.len());
    }
}

/// Computes the marginal likelihood as a product of predictive probabilities, one for each observation given
/// the observations before it.
fn predicted_one_by_one(
    data: &DiscreteData,
    node: usize,
    parents: &[usize],
    sample_size: f64,
    rows: &[usize],
) -> f64 {
    let cells: f64 =
        parents.iter().map(|&p| data.n_values()[p] as f64).product::<f64>() * data.n_values()[node] as f64;
    let mut sum = 0.0;
    for (k, &row) in rows.iter().enumerate() {
        let same = |other: usize| parents.iter().all(|&p| data.row(other)[p] == data.row(row)[p]);
        let before: Vec<usize> = rows[..k].iter().copied().filter(|&other| same(other)).collect();
        let hits =
            before.iter().filter(|&&other| data.row(other)[node] == data.row(row)[node]).count() as f64;
        let prior = sample_size / cells;
        sum += ((hits + prior) / (before.len() as f64 + prior * data.n_values()[node] as f64)).ln();
    }
    sum
}

#[test]
fn bde_is_the_product_of_predictions() {
    let mut rng = Rng::seeded(0);
    let dag = GraphLaw::ErdosRenyi { edges: 5.0 }.draw(4, &mut rng).unwrap();
    let data = DiscreteNetwork::draw(dag, 3, &mut rng).unwrap().sample(30, &mut rng).unwrap();
    let bde =
        Bde::new(data.clone(), BdeConfig { equivalent_sample_size: 4.0, ..BdeConfig::default() }).unwrap();
    let rows: Vec<usize> = (0..30).collect();
    for parents in [vec![], vec![1], vec![3, 1], vec![1, 2, 3]] {
        let expected = predicted_one_by_one(&data, 0, &parents, 4.0, &rows);
        close(bde.local_score(0, &parents.into_iter().collect()), expected, "BDeu");
    }
    // The eight parents w1 to w8 have so many combinations of values (6^8) that counts are kept in a map
    // instead of an array.
    let wide = DiscreteData::new(
        (0..9).map(|i| format!("w{i}")).collect(),
        vec![6; 9],
        (0..9 * 40).map(|_| rng.below(6) as u16).collect(),
    );
    let wide = wide.unwrap();
    let parents: Vec<usize> = (1..9).collect();
    let expected = predicted_one_by_one(&wide, 0, &parents, 1.0, &(0..40).collect::<Vec<_>>());
    let bde = Bde::new(wide, BdeConfig::default()).unwrap();
    close(bde.local_score(0, &parents.into_iter().collect()), expected, "BDeu of a large table");
}

#[test]
fn bic_is_least_squares() {
    let data = ContinuousData::from_rows(&[
        [1.0, 2.0, 0.3],
        [2.0, 3.9, -1.0],
        [3.0, 6.2, 0.2],
        [4.5, 8.8, 0.9],
        [5.0, 9.0, 0.1],
    ]);
    let data = data.unwrap();
    let bic = LinearGaussianBic::new(&data).unwrap();
    let x = data.column(0);
    let y = data.column(1);
    let mean = |v: &[f64]| v.iter().sum::<f64>() / 5.0;
    let sum = |f: &dyn Fn(usize) -> f64| (0..5).map(f).sum::<f64>();
    let slope = sum(&|i| (x[i] - mean(&x)) * (y[i] - mean(&y))) / sum(&|i| (x[i] - mean(&x)).powi(2));
    let residual = sum(&|i| (y[i] - mean(&y) - slope * (x[i] - mean(&x))).powi(2));
    let variance = residual / 5.0;
    let log_likelihood = sum(&|i| {
        let error = y[i] - mean(&y) - slope * (x[i] - mean(&x));
        -0.5 * (std::f64::consts::TAU * variance).ln() - error * error / (2.0 * variance)
    });
    close(bic.local_score(1, &NodeSet::EMPTY.with(0)), log_likelihood - 1.5 * 5f64.ln(), "BIC of a line");
    let collinear = ContinuousData::from_rows(&[[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 8.0]]).unwrap();
    assert!(LinearGaussianBic::new(&collinear).unwrap_err().to_string().contains("`x1`"));
}

#[test]
fn constant_variables_are_refused_whatever_their_value() {
    let mut rng = Rng::seeded(3);
    // In each case a column has the same value in all rows. For some values, rounding makes the mean differ
    // from the value, so that the sum of squared deviations isn't 0. The column must be recognised as
    // constant nevertheless.
    for (value, rows) in
        [(1.0, 20), (0.0, 20), (0.1, 20), (1013.25, 50), (5.0, 16), (1e-7, 33), (-273.15, 41)]
    {
        for place in 0..3 {
            let row = |rng: &mut Rng| {
                (0..3).map(|i| if i == place { value } else { rng.normal() }).collect::<Vec<f64>>()
            };
            let values: Vec<f64> = (0..rows).flat_map(|_| row(&mut rng)).collect();
            let data = ContinuousData::new(["a", "b", "c"].map(String::from).to_vec(), values).unwrap();
            let bge = Bge::new(&data, BgeConfig::default()).unwrap_err();
            let bic = LinearGaussianBic::new(&data).unwrap_err();
            let standard = data.standardised().unwrap_err();
            let words = format!("`{}`, which is {value} in every row", ["a", "b", "c"][place]);
            for error in [
                bge.to_string(),
                bic.to_string(),
                standard.to_string(),
                data.discretised(3).unwrap_err().to_string(),
            ] {
                assert!(
                    error.contains(&words) || error.contains("all of whose values fall into one of 3 levels"),
                    "{error}"
                );
            }
        }
    }
    // A column in which a single value differs in its last bit isn't constant.
    let nearly: Vec<f64> =
        (0..20).flat_map(|k| [if k == 7 { 0.1f64.next_up() } else { 0.1 }, rng.normal()]).collect();
    let nearly = ContinuousData::new(["a", "b"].map(String::from).to_vec(), nearly).unwrap();
    assert!(Bge::new(&nearly.standardised().unwrap(), BgeConfig::default()).is_ok());
    // Column `a` varies only in rows with interventions on it, which don't count for its score. The BIC must
    // refuse the column as constant, but BGe must accept it.
    let mut rows: Vec<f64> = (0..20).flat_map(|_| [0.1, rng.normal()]).collect();
    rows.extend((0..20).flat_map(|k| [k as f64, 3.0]));
    let targets = (0..40).map(|row| if row < 20 { NodeSet::EMPTY } else { NodeSet::EMPTY.with(0) }).collect();
    let set = ContinuousData::new(["a", "b"].map(String::from).to_vec(), rows).unwrap();
    let set = set.with_interventions(targets).unwrap();
    assert!(LinearGaussianBic::new(&set).unwrap_err().to_string().contains("`a`, which is 0.1 in every row"));
    assert!(Bge::new(&set, BgeConfig::default()).is_ok());
}

/// Checks that rows with an intervention on a node count for the scores of the other nodes but not of this
/// node, and that such rows reveal the direction of an edge.
#[test]
fn experiments_count_where_they_should() {
    let mut rng = Rng::seeded(1);
    let dag = acyclic(3, &[(0, 1), (1, 2)]).unwrap();
    let sem = Sem::new(
        dag,
        [vec![], vec![1.5], vec![-1.0]].map(|weights| Mechanism::Linear { weights }).to_vec(),
        0.5,
    );
    let sem = sem.unwrap();
    let seen = sem.sample(20, &mut rng).unwrap();
    let set = sem.sample_do(15, &[(1, 3.0)], &mut rng).unwrap();
    assert!((0..15).all(|row| set.row(row)[1] == 3.0));
    let values: Vec<f64> =
        (0..20).flat_map(|r| seen.row(r)).chain((0..15).flat_map(|r| set.row(r))).copied().collect();
    let mut targets = vec![NodeSet::EMPTY; 20];
    targets.extend(set.interventions().unwrap());
    let plain = ContinuousData::new(seen.names().to_vec(), values).unwrap();
    let data = plain.clone().with_interventions(targets.clone()).unwrap();
    let score = |data: &ContinuousData| Bge::new(data, BgeConfig::default()).unwrap();
    let both = score(&data);
    let all = score(&plain);
    let observed = score(&seen);
    let parents = NodeSet::EMPTY.with(0);
    assert_eq!(both.local_score(1, &parents), observed.local_score(1, &parents));
    assert_eq!(both.local_score(2, &parents), all.local_score(2, &parents));
    let graphs = super::graphs(3, &[&[(0, 1), (1, 2)], &[(2, 1), (1, 0)]]);
    let gap = |score: &Bge| {
        let [first, second] = [0, 1].map(|row| score.graph_score(&graphs.graphs()[row]).unwrap());
        first - second
    };
    assert!(gap(&observed).abs() < 1e-9 && gap(&both) > 5.0, "{} {}", gap(&observed), gap(&both));

    let discrete = plain.discretised(3).unwrap();
    let bde = |data| Bde::new(data, BdeConfig::default()).unwrap();
    let rows: Vec<usize> = (0..20).collect();
    let with = bde(discrete.clone().with_interventions(targets).unwrap());
    let without = bde(discrete.clone());
    close(
        with.local_score(1, &parents),
        predicted_one_by_one(&discrete, 1, &[0], 1.0, &rows),
        "BDeu of an experiment",
    );
    assert_eq!(with.local_score(2, &parents), without.local_score(2, &parents));
    let everywhere = seen.clone().with_interventions(vec![NodeSet::EMPTY.with(0); 20]).unwrap();
    // Every row has an intervention on node 0. Such rows aren't observations of this node, so it has too few.
    let few = Bge::new(&everywhere, BgeConfig::default()).unwrap_err().to_string();
    assert!(few.contains("0 for 3 variables"), "{few}");
    let discrete = seen.discretised(2).unwrap().with_interventions(vec![NodeSet::EMPTY.with(0); 20]).unwrap();
    assert!(
        Bde::new(discrete.clone(), BdeConfig::default())
            .unwrap_err()
            .to_string()
            .contains("0 for 3 variables")
    );
    let config = BgeConfig { allow_few_observations: true, ..BgeConfig::default() };
    let nothing = Bge::new(&everywhere, config).unwrap().local_score(0, &parents.without(0).with(1));
    assert!(nothing.abs() < 1e-9, "no row says anything of node 0");
    let config = BdeConfig { allow_few_observations: true, ..BdeConfig::default() };
    assert_eq!(Bde::new(discrete, config).unwrap().local_score(0, &parents.without(0).with(1)), 0.0);
    assert!(LinearGaussianBic::new(&everywhere).unwrap_err().to_string().contains("0 for 3 variables"));
}

#[test]
fn priors_are_what_they_say() {
    let terms = |prior: StructurePrior| prior.terms(6).unwrap();
    assert_eq!(terms(StructurePrior::Uniform), [0.0; 6]);
    let p: f64 = 6.0 / 15.0;
    close(
        terms(StructurePrior::ErdosRenyi { edges_per_node: 1.0 })[2],
        2.0 * p.ln() + 3.0 * (1.0 - p).ln(),
        "ER",
    );
    close(terms(StructurePrior::EdgePenalty { beta: 0.1 })[3], 3.0 * 0.1f64.ln(), "penalty");
    close(terms(StructurePrior::Fair)[2], -(15f64.ln()), "fair");
    for prior in [
        StructurePrior::ErdosRenyi { edges_per_node: 2.5 },
        StructurePrior::ErdosRenyi { edges_per_node: 0.0 },
        StructurePrior::EdgePenalty { beta: 0.0 },
        StructurePrior::EdgePenalty { beta: f64::NAN },
    ] {
        assert!(prior.terms(6).is_err(), "{prior:?}");
    }
}

#[test]
fn changes_are_differences_of_rewards() {
    let mut rng = Rng::seeded(4);
    let dag = GraphLaw::ErdosRenyi { edges: 10.0 }.draw(9, &mut rng).unwrap();
    let data = Sem::draw(dag, SemConfig::Linear, 0.5, &mut rng).unwrap().sample(60, &mut rng).unwrap();
    let env = BayesianStructure::new(StructureConfig::new(9)).unwrap().into_env();
    let bge = Bge::new(&data, BgeConfig::default()).unwrap();
    let prior = StructurePrior::ErdosRenyi { edges_per_node: 1.0 };
    let reward =
        DagReward::new(CachedScores::new(bge), prior).unwrap().relative_to(&env.initial_graphs()[0]).unwrap();
    assert_eq!(reward.log_reward(&env.initial(&[0]), None).unwrap(), [0.0]);
    let mut states = env.initial(&[0; 200]);
    let mut total = vec![0.0; 200];
    for _ in 0..8 {
        let masks = env.masks(Direction::Forward, &states);
        let slot = |row| {
            let legal: Vec<u32> = masks.legal_slots(row).collect();
            legal[rng.below(legal.len())]
        };
        let slots = Slots((0..states.len()).map(slot).collect());
        let before = states.clone();
        env.step(Direction::Forward, &mut states, &slots).unwrap();
        let changes = reward.log_reward_change(&before, &states, None).unwrap().unwrap();
        for (total, change) in total.iter_mut().zip(changes) {
            *total += change;
        }
    }
    let rewards = reward.log_reward(&states, None).unwrap();
    assert!(rewards.iter().zip(&total).all(|(a, b)| (a - b).abs() < 1e-9));
    assert_eq!(reward.partial_log_reward(&states, None).unwrap(), Some(rewards));
    let other = BayesianStructure::new(StructureConfig::new(5)).unwrap().into_env();
    assert!(reward.log_reward(&other.initial(&[0]), None).is_err());
}

#[test]
fn remembered_scores_are_the_scores() {
    let mut rng = Rng::seeded(5);
    let dag = GraphLaw::ScaleFree { edges_per_node: 2 }.draw(20, &mut rng).unwrap();
    let data = Sem::draw(dag, SemConfig::Linear, 0.5, &mut rng).unwrap().sample(60, &mut rng).unwrap();
    let bge = Bge::new(&data, BgeConfig::default()).unwrap();
    let ahead = CachedScores::ahead(&bge, Some(2)).unwrap();
    assert_eq!(ahead.len(), 20 * (1 + 19 + 19 * 18 / 2));
    let asked = CachedScores::new(&bge);
    for _ in 0..500 {
        let node = rng.below(20);
        let parents: NodeSet =
            (0..rng.below(5)).map(|_| rng.below(20)).filter(|&parent| parent != node).collect();
        let expected = bge.local_score(node, &parents);
        for score in [&ahead, &asked, &asked] {
            assert_eq!(score.local_score(node, &parents), expected);
        }
    }
    assert!(asked.len() > 200 && asked.len() <= 500);
    // A clone shares the cache: it returns a score that the original doesn't compute again.
    let shared = asked.clone();
    let n_cached = asked.len();
    shared.local_score(0, &(1..9).collect());
    assert_eq!(asked.len(), n_cached + 1);
    let message = CachedScores::ahead(&bge, None).unwrap_err().to_string();
    assert!(message.contains("limit the number of parents"), "{message}");
    let few = Bge::new(&data.select(&[0, 1, 2]).unwrap(), BgeConfig::default()).unwrap_err().to_string();
    assert!(few.contains("3 for 20 variables"), "{few}");
    let config = BgeConfig { allow_few_observations: true, ..BgeConfig::default() };
    assert!(
        Bge::new(&data.select(&[0, 1, 2]).unwrap(), config)
            .unwrap()
            .local_score(3, &[1, 2].into_iter().collect())
            .is_finite()
    );
    for config in [
        BgeConfig { alpha_mu: 0.0, ..BgeConfig::default() },
        BgeConfig { alpha_w: Some(21.0), ..BgeConfig::default() },
        BgeConfig { nu: Some(vec![0.0; 3]), ..BgeConfig::default() },
    ] {
        assert!(Bge::new(&data, config).is_err());
    }
}
