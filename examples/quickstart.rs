//! The example in the README: a policy learns to sample graphs on four nodes, with a high reward for rings.
//! The program writes two pictures of the result. The argument of the program is the folder for the pictures.

use gfn::prelude::*;
use gfn_plot::{Figure, GraphDrawing, Layout, Panel, PictureSheet};

fn main() -> gfn::Result<()> {
    // The states are the 64 undirected graphs on four labelled nodes, which are built edge by edge.
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::free(actions, GraphState::undirected(4))?;
    // log R is 2 for each node with exactly two neighbours. The three rings have the highest reward, because
    // all four nodes have two neighbours.
    let reward =
        PerGraph(|graph: &GraphState| 2.0 * (0..4).filter(|&node| graph.degree(node) == 2).count() as f64);

    let mut trained = Experiment::new(env, reward).steps(500).train()?;

    // `exact` holds the policy's exact probability of every graph, and the target R(x) / Z.
    let exact = trained.exact(1_000)?;
    println!("total variation {:.4} over {} graphs", exact.distances.tv, exact.space.len());
    for graph in trained.sample(5)?.graphs() {
        println!("{graph}");
    }

    let folder = std::env::args().nth(1).unwrap_or_else(|| "out".into());
    std::fs::create_dir_all(&folder).map_err(|error| gfn::Error::io(&folder, error))?;
    let learned = &exact.learned.probs;
    let target = &exact.target.probs;
    let drawing = GraphDrawing { layout: Layout::Circle, ..GraphDrawing::default() };
    let mut sheet = PictureSheet::new("the most probable graphs", drawing.side).columns(7);
    for k in exact.most_probable(7) {
        let caption = [format!("p = {:.4}", learned[k]), format!("target {:.4}", target[k])];
        sheet = sheet.cell(drawing.draw(&exact.space.states().graphs()[k]), caption);
    }
    sheet.write(format!("{folder}/rings.svg"))?;
    let points = target.iter().copied().zip(learned.iter().copied());
    let panel = Panel::learned_against_target("all 64 graphs", points);
    Figure::new("").panel(panel).write(format!("{folder}/learned_against_target.svg"))?;
    println!("drawn in {folder}: rings.svg, learned_against_target.svg");
    Ok(())
}
