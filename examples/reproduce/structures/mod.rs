//! Tasks on structures of Bayesian networks.

pub(crate) mod bayesian_structure;
pub(crate) mod dag_from_csv;
pub(crate) mod problem;

impl crate::Task for dag_from_csv::Args {
    fn run(&self) -> gfn::Result<()> {
        dag_from_csv::run(self)
    }
}
