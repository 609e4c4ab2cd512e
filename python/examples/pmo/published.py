"""Published areas of the oracles of PMO."""

# The published areas, mean of five runs: REINVENT by Gao et al. 2022, Genetic GFN by Kim et al. 2024.
# Genetic GFN was run with PyTDC 0.4.0. The code of Gao et al. asks for PyTDC 0.3.6, in which four oracles
# (both isomers, sitagliptin and zaleplon) count atoms wrongly, so REINVENT's areas of these, and its sum,
# may not compare.
PUBLISHED = {
    "albuterol_similarity": (0.882, 0.949),
    "amlodipine_mpo": (0.635, 0.761),
    "celecoxib_rediscovery": (0.710, 0.802),
    "deco_hop": (0.666, 0.733),
    "fexofenadine_mpo": (0.784, 0.856),
    "isomers_c7h8n2o2": (0.852, 0.969),
    "isomers_c9h10n2o2pf2cl": (0.642, 0.897),
    "median1": (0.356, 0.379),
    "median2": (0.276, 0.294),
    "mestranol_similarity": (0.618, 0.708),
    "osimertinib_mpo": (0.837, 0.860),
    "perindopril_mpo": (0.537, 0.595),
    "qed": (0.941, 0.942),
    "ranolazine_mpo": (0.760, 0.819),
    "scaffold_hop": (0.560, 0.615),
    "sitagliptin_mpo": (0.021, 0.634),
    "thiothixene_rediscovery": (0.534, 0.583),
    "troglitazone_rediscovery": (0.441, 0.511),
    "valsartan_smarts": (0.178, 0.135),
    "zaleplon_mpo": (0.358, 0.552),
}
