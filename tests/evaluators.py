"""Small twins of published evaluators of mean average precision.

Each follows the convention of one program: which ranks count, the order of ties, the divisor, and
what happens to a query without a hit. The lines cited were read at the commit named. The twins take
codes of -1 and 1 (float32), labels as 0/1 matrices, and return the mean as a float.

The twins were compared with the programs on the cases of test_conventions.py: the functions
of DeepHash-pytorch, CSQ and both of HashNet agree to 4e-16, ranx 0.3.21 exactly (with numba's order
of ties), torchmetrics 1.9.0 to the rounding of float32 (with the order of torch.topk), trec_eval to
the four digits that it prints. OrthoHash and the MATLAB programs were read, not run.
"""

import numpy as np


def distances(queries, database):
    """Return the Hamming distances (n_queries, n_items) of codes of -1 and 1."""
    return 0.5 * (queries.shape[1] - queries @ database.T)


def relevance(query_labels, db_labels):
    """Return whether each query and each item share a label."""
    return (query_labels @ db_labels.T) > 0


def precision_sum(hits):
    """Return the sum of the precisions at the hits, given in order of rank."""
    ranks = np.flatnonzero(hits) + 1
    return sum(n_hits / rank for n_hits, rank in enumerate(ranks, start=1))


def mean_precision(hits):
    """Return the sum of the precisions divided by the hits, 0 without a hit."""
    return precision_sum(hits) / max(np.sum(hits), 1)


def mean(scores):
    """Return the mean, or NaN if every query was left out."""
    return np.mean(scores) if scores else np.nan


def by_similarity(queries, database, query_labels, db_labels, top):
    """Return the first relevances of each query by numpy's default sort along axis 0."""
    order = np.argsort(-(database @ queries.T), axis=0)
    is_relevant = relevance(query_labels, db_labels)
    return [is_relevant[q][order[:top, q]] for q in range(len(queries))]


def stable(values):
    """Return the order of increasing values, ties as they stand."""
    return np.argsort(values, kind="stable")


def deephash_pytorch(queries, database, query_labels, db_labels, top):
    """Divide by the hits in the top; a query without a hit adds 0; numpy's default sort.

    swuxyj/DeepHash-pytorch @ ab14068, utils/tools.py, CalcTopMap, lines 213-232: argsort of float32
    distances (219), the first topk (222), no hit: nothing is added (224), the mean of count / index
    (229), divided by all queries (231). topK is -1 for CIFAR-10, MIRFlickr and VOC 2012 (lines 12,
    27, 30), and then ``gnd[0:topk]`` drops the last item.
    """
    is_relevant = relevance(query_labels, db_labels)
    scores = []
    for q in range(len(queries)):
        order = np.argsort(distances(queries[q : q + 1], database)[0])
        scores.append(mean_precision(is_relevant[q][order][0:top]))
    return np.mean(scores)


def csq(queries, database, query_labels, db_labels, top):
    """Divide by the hits in the top; without a hit 0; queries without a label do not count.

    yuanli2333/Hadamard-Matrix-for-hashing @ 55cab00, test.py, lines 10-50: argsort of negative
    similarities along axis 0 (21), a query without a label is passed over (31), division by the
    hits among the first R (41), 0 without a hit (43), the mean (50).
    """
    ranked = by_similarity(queries, database, query_labels, db_labels, top)
    has_label = query_labels.sum(axis=1) > 0
    return np.mean([mean_precision(ranked[q]) for q in np.flatnonzero(has_label)])


def hashnet_pytorch(queries, database, query_labels, db_labels, top):
    """Divide by the hits in the top; a query without a hit is left out.

    thuml/HashNet @ 85387b8, pytorch/src/test.py, lines 31-53: argsort of negative similarities
    along axis 0 (39), the score is appended only if there is a hit (50-51).
    """
    ranked = by_similarity(queries, database, query_labels, db_labels, top)
    return mean([mean_precision(hits) for hits in ranked if hits.any()])


def hashnet_caffe(queries, database, query_labels, db_labels, top):
    """Divide by the hits in the top; without a hit 0; queries without a relevant item left out.

    thuml/HashNet @ 85387b8, caffe/models/predict/nuswide_81/predict_parallel.py, lines 20-46: the
    test on ground_truth (35), division by the hits or by 1 (41-44).
    """
    ranked = by_similarity(queries, database, query_labels, db_labels, top)
    counts = relevance(query_labels, db_labels).any(axis=1)
    return mean([mean_precision(ranked[q]) for q in np.flatnonzero(counts)])


def orthohash(queries, database, query_labels, db_labels, top, order=stable):
    """Divide by the hits in the top; without a hit 0; torch.topk, given here by ``order``.

    kamwoh/orthohash @ 94c4a03, functions/hashing.py, calculate_mAP, lines 55-129: torch.topk of the
    distances (102), division by the hits among the first R (119), 0 without a hit (121).
    """
    rows = zip(relevance(query_labels, db_labels), distances(queries, database), strict=True)
    return np.mean([mean_precision(target[order(row)[:top]]) for target, row in rows])


def int8_similarities(queries, database):
    """Return similarities as MATLAB's int8 has them: rounded and saturated, not wrapped.

    fcakir/mihash @ e6ba59e, evaluate.m, lines 96-97 and 105-106; the same lines in the HMOH
    authors' copy, lmbxmu/mycode @ 4303c6e, ONLINE_HASHING_UTILS/evaluate.m.
    """
    return np.clip(queries @ database.T, -128, 127)


def matlab_map(queries, database, query_labels, db_labels, top=None):
    """Divide by the relevant items; queries without one give NaN and are left out.

    fcakir/mihash @ e6ba59e, evaluate.m, lines 18-28 (metric "mAP"): vl_pr on all items, the mean of
    what is not NaN (28). vl_pr sorts by descending score, and MATLAB's sort is stable:
    lmbxmu/mycode @ 4303c6e, ONLINE_HASHING_UTILS/vlfeat/toolbox/plotop/vl_tpfp.m, line 48; the
    precisions at the recalled items divided by their number: vl_pr.m, lines 166-167;
    0 / 0 without one.
    """
    rows = zip(
        relevance(query_labels, db_labels), int8_similarities(queries, database), strict=True
    )
    return mean([mean_precision(target[stable(-row)]) for target, row in rows if target.any()])


def matlab_map_at(queries, database, query_labels, db_labels, top):
    """Divide by the hits in the top; queries without a hit are left out.

    fcakir/mihash @ e6ba59e, evaluate.m, lines 31-50 (metric "mAP_"): the items of each similarity
    in database order (42-45), the first N of them (46), vl_pr on these alone (47), so that its
    divisor is the number of hits among them.
    """
    is_relevant = relevance(query_labels, db_labels)
    scores = []
    for q, row in enumerate(int8_similarities(queries, database)):
        order = []
        for similarity in range(queries.shape[1], -queries.shape[1] - 1, -1):
            order.extend(np.flatnonzero(row == similarity))
            if len(order) >= top:
                break
        hits = is_relevant[q][order[:top]]
        if hits.any():
            scores.append(mean_precision(hits))
    return mean(scores)


def oasis(queries, database, query_labels, db_labels, top=None):
    """Divide by the relevant items; a query without one is 0.

    DravenALG/OASIS @ 26636f9 (online multi-modal hashing, AAAI 2022): evaluate_OASIS.m, line 38, a
    stable sort of the Hamming distances; mAP.m, lines 4-19: scores begin as 0 (4), R is the whole
    database (5), division by all hits (16), the mean (19).
    """
    rows = zip(relevance(query_labels, db_labels), distances(queries, database), strict=True)
    return np.mean([mean_precision(target[stable(row)]) for target, row in rows])


def torchmetrics_map(scores, is_relevant, top, order=stable):
    """Divide by the hits in the top; without a hit 0; items with a score of 0 or less are no hits.

    Lightning-AI/torchmetrics @ dab0333, src/torchmetrics/functional/retrieval/average_precision.py:
    targets with preds <= 0 become 0 (55), topk (56), 0 without a hit (58-59), mean over the hits
    (61-62); src/torchmetrics/retrieval/base.py, lines 170-179, empty_target_action "neg" by
    default. Line 160 sorts the indexes of the queries without stability, which may mix the items.
    It computes in float32, this twin in float64. topk is given here by ``order``.
    """
    result = []
    for row, target in zip(scores, is_relevant, strict=True):
        result.append(mean_precision(np.where(row > 0, target, False)[order(-row)[:top]]))
    return np.mean(result)


def ranx_map(scores, is_relevant, top, order=stable):
    """Divide by the relevant items; a query without one is 0.

    AmenRa/ranx @ 2cae52f, ranx/metrics/average_precision.py: 0 without a relevant document (14-15),
    at most all documents (17), division by the number of relevant documents (42). The run is sorted
    by numba's argsort: ranx/data_structures/common.py, lines 55-59 and 82, given here by ``order``.
    """
    result = []
    for row, target in zip(scores, is_relevant, strict=True):
        hits = target[order(-row)[:top]]
        result.append(precision_sum(hits) / max(target.sum(), 1))
    return np.mean(result)


def trec_eval_map(scores, is_relevant, names, top=None):
    """Divide by the relevant documents; a topic without one is 0; ties by name, descending.

    usnistgov/trec_eval @ f425365, form_res_rels.c, comp_sim_docno, lines 266-275: larger similarity
    first, then strcmp(p2, p1); m_map.c, lines 57-66: the sum divided by num_rel, values begin as 0;
    m_map_cut.c, lines 57-81: the same up to a cutoff; every judged topic counts: trec_eval.c, 463.
    """
    result = []
    for row, target in zip(scores, is_relevant, strict=True):
        items = sorted(range(len(row)), key=lambda j: names[j], reverse=True)
        items.sort(key=lambda j: -row[j])
        hits = [target[j] for j in items][:top]
        result.append(precision_sum(hits) / max(target.sum(), 1))
    return np.mean(result)
