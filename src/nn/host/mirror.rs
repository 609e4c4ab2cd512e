//! A copy of all parameters on the host.

use tch::{Device, Tensor};

use crate::nn::Parameters;

/// The values of parameters on the host, from which layers are copied to the host. The parameters are joined
/// on their device and transferred at once, because each transfer waits for the device. A mirror holds the
/// values that the parameters had when it was made.
///
/// The default mirror is empty. Values that a mirror doesn't hold are copied from their tensor.
///
/// A mirror is made for one roll-out. It isn't kept until the parameters change, because such a change can't
/// always be detected ([`Parameters::version`]).
#[derive(Debug, Default)]
pub(in crate::nn) struct Mirror {
    values: Vec<f32>,
    /// The address of the first number of each parameter on its device, and the index of this number in
    /// `values`. The list is sorted.
    starts: Vec<(usize, usize)>,
}

impl Mirror {
    /// Copies parameters in single precision that are on another device. The mirror of parameters on the host
    /// is empty, because there each tensor can be copied without a transfer.
    pub(in crate::nn) fn from_device(parameters: &Parameters) -> Self {
        if parameters.device() == Device::Cpu { Self::default() } else { Self::new(parameters) }
    }

    /// Copies all parameters, which must be in single precision, from any device.
    pub(in crate::nn) fn new(parameters: &Parameters) -> Self {
        let tensors = parameters.iter().map(|parameter| parameter.tensor.detach());
        let mut tensors: Vec<Tensor> = tensors.filter(Tensor::is_contiguous).collect();
        tensors.sort_by_key(|tensor| tensor.data_ptr() as usize);
        let mut starts = Vec::with_capacity(tensors.len());
        let mut n = 0;
        for tensor in &tensors {
            starts.push((tensor.data_ptr() as usize, n));
            n += tensor.numel();
        }
        if tensors.is_empty() {
            return Self::default();
        }
        let flat: Vec<Tensor> = tensors.iter().map(|tensor| tensor.view(-1)).collect();
        Self { values: floats(&Tensor::cat(&flat, 0)), starts }
    }

    /// Returns the numbers of a tensor in single precision, row by row: from the mirror if the tensor is a
    /// parameter or a part of a parameter, otherwise from the tensor itself.
    pub(in crate::nn) fn floats(&self, tensor: &Tensor) -> Vec<f32> {
        self.find(tensor).map_or_else(|| floats(tensor), <[f32]>::to_vec)
    }

    /// Returns the numbers of a parameter or of a part of a parameter; `None` for any other tensor.
    fn find(&self, tensor: &Tensor) -> Option<&[f32]> {
        let address = tensor.data_ptr() as usize;
        let next = self.starts.partition_point(|&(start, _)| start <= address);
        let (start, index) = self.starts[next.checked_sub(1)?];
        let end = self.starts.get(next).map_or(self.values.len(), |&(_, index)| index);
        let first = index + (address - start) / size_of::<f32>();
        let is_part = tensor.is_contiguous() && first + tensor.numel() <= end;
        is_part.then(|| &self.values[first..first + tensor.numel()])
    }
}

/// Copies the numbers of a tensor in single precision to the host, row by row.
pub(crate) fn floats(tensor: &Tensor) -> Vec<f32> {
    let tensor = tensor.detach().contiguous();
    let mut out = vec![0.0; tensor.numel()];
    tensor.copy_data(&mut out, tensor.numel());
    out
}

#[cfg(test)]
mod tests {
    use tch::Kind;

    use super::*;
    use crate::Rng;

    #[test]
    fn a_mirror_has_the_values_of_its_time_and_knows_parameters_from_other_tensors() {
        let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
        let mut rng = Rng::seeded(0);
        let mut scope = parameters.scope(&mut rng);
        let mut table = scope.normal("table", &[5, 3], 1.0);
        let bias = scope.normal("bias", &[4], 1.0);
        let scalar = scope.constant("scalar", &[], 2.5);
        let mirror = Mirror::new(&parameters);
        for tensor in [&table, &bias, &scalar, &table.narrow(0, 1, 2), &table.get(4)] {
            assert_eq!(mirror.find(tensor), Some(floats(tensor).as_slice()));
        }
        // A column isn't contiguous, and results of operations and empty tensors aren't parameters.
        for tensor in [table.select(1, 1), &table * 2.0, bias.narrow(0, 0, 0).contiguous() + 1.0] {
            assert!(mirror.find(&tensor).is_none());
            assert_eq!(mirror.floats(&tensor), floats(&tensor));
        }
        let before = floats(&table);
        tch::no_grad(|| {
            let _ = table.fill_(7.0);
        });
        assert_eq!(mirror.floats(&table), before, "a mirror doesn't follow its parameters");
        assert_eq!(Mirror::new(&parameters).floats(&table), [7.0; 15]);
        assert!(Mirror::from_device(&parameters).values.is_empty(), "parameters on the host need no mirror");
        assert!(Mirror::new(&Parameters::new(Device::Cpu, Kind::Float)).find(&table).is_none());
    }
}
