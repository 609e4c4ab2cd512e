//! The checkpoint sections of a trainer's companions: moving average, target network, novelty, teacher.

use tch::Tensor;

use crate::Result;
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::train::{Checkpoint, Trainer};

/// A section of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Section {
    Average,
    Lagged,
    Novelty,
    Teacher,
}

impl Section {
    const ALL: [Self; 4] = [Self::Average, Self::Lagged, Self::Novelty, Self::Teacher];

    fn name(self) -> &'static str {
        match self {
            Self::Average => "average",
            Self::Lagged => "lagged",
            Self::Novelty => "novelty",
            Self::Teacher => "teacher",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Average => "an average of its parameters",
            Self::Lagged => "a copy of its parameters that lags behind",
            Self::Novelty => "a novelty that learns",
            Self::Teacher => "a teacher",
        }
    }
}

/// The sections of a trainer with their tensors.
pub(in crate::train) struct Kept(Vec<(Section, Vec<(String, Tensor)>)>);

impl Kept {
    /// Adds the sections to a checkpoint.
    pub(in crate::train) fn add_to(self, checkpoint: Checkpoint) -> Checkpoint {
        self.0.into_iter().fold(checkpoint, |checkpoint, (section, tensors)| checkpoint.with(section.name(), tensors))
    }
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// The trainer's current sections.
    pub(in crate::train) fn sections(&self) -> Result<Kept> {
        let mut kept = Vec::new();
        if let Some((average, _)) = &self.average {
            kept.push((Section::Average, average.state()));
        }
        if let Some(lagged) = &self.lagged {
            kept.push((Section::Lagged, lagged.copy.state()));
        }
        if let Some(intrinsic) = &self.intrinsic {
            kept.push((Section::Novelty, intrinsic.novelty.state()?));
        }
        if let Some(teacher) = &self.teacher {
            kept.push((Section::Teacher, teacher.state()?));
        }
        // A companion without state gets no section.
        kept.retain(|(_, tensors)| !tensors.is_empty());
        Ok(Kept(kept))
    }

    /// Loads a checkpoint's sections. The inner error says what doesn't fit, and nothing is changed then.
    pub(in crate::train) fn load_sections(
        &mut self,
        checkpoint: &Checkpoint,
    ) -> Result<std::result::Result<Kept, String>> {
        let before = self.sections()?;
        for section in Section::ALL {
            let ours = before.0.iter().any(|(kept, _)| *kept == section);
            if ours == checkpoint.section(section.name()).is_empty() {
                let noun = section.noun();
                return Ok(Err(format!("one of the two runs keeps {noun}, the other doesn't")));
            }
        }
        for &(section, _) in &before.0 {
            if let Err(error) = self.load_section(section, &checkpoint.section(section.name())) {
                self.restore_sections(&before)?;
                return Ok(Err(format!("{} can't be used here ({error})", section.noun())));
            }
        }
        Ok(Ok(before))
    }

    /// Loads the given sections.
    pub(in crate::train) fn restore_sections(&mut self, kept: &Kept) -> Result<()> {
        kept.0.iter().try_for_each(|(section, tensors)| self.load_section(*section, tensors))
    }

    fn load_section(&mut self, section: Section, tensors: &[(String, Tensor)]) -> Result<()> {
        match section {
            Section::Average => self.average.as_mut().map(|(average, _)| average.load_state(tensors)),
            Section::Lagged => self.lagged.as_mut().map(|lagged| lagged.copy.load_state(tensors)),
            Section::Novelty => self.intrinsic.as_mut().map(|intrinsic| intrinsic.novelty.load_state(tensors)),
            Section::Teacher => self.teacher.as_mut().map(|teacher| teacher.load_state(tensors)),
        }
        .unwrap_or(Ok(()))
    }
}
