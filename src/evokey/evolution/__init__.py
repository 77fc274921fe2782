"""Lessons → a proposal for a new epoch. This runs in batches, when evolve is called, and never inside a search.

The way of the data, file by file:

    judgements.py     lessons → which documents are right or wrong for which query; restricted.py splits off those on
                      restricted documents, which learn apart
    pairs.py          judgements → pairs of a document's row and a text that it was taught
    attribution.py    pairs → weights α, and with a choice the overlay that search adds to the store
    grid.py           the choices to compare
    trial.py          queries × choices → nDCG@10, for one retriever: pools.py has the untaught rankings,
                      trial_pools.py those for other words and lenses, base_scores.py the tables, candidates.py and
                      taught_keys.py find the documents that matter, ndcg.py and tables.py do the arithmetic
    crossfit.py       a trial for each fold (folds.py), with lenses (lens_training.py) and unrelated traffic
                      (traffic.py) → one choice per retriever
    plans.py          choices of all retrievers × fusion weights → nDCG@10 of the fused ranking
    evaluation.py     plans limited to questions near a taught one (nearness.py), so that nobody is harmed
    choosing.py       the rule that picks a choice or a plan
    guarded.py        the policy that follows this line; paper.py, with saturation.py, is the paper's own rule
    policy.py         what every policy is given, and the proposal that it returns
    proposing.py      gives a policy its data, and puts its proposal into a report
    publishing.py     publishes the report as an epoch, and learns again when lessons are forgotten
    composer.py       the lessons of an epoch → its overlays, by the policy
"""
