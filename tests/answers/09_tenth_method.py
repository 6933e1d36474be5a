"""Answers of students to the checks of 09_tenth_method. The format is in test_exercises.py.

A class that changes some methods only has the others from the solution.
"""


# %% wrong pieces: add it to what was there
def accumulate(A, B, Z, C):
    Z = Z.astype(np.float64)
    return Z.T @ Z, Z.T @ C


# %% wrong pieces: accumulate changed the arrays it was given
def accumulate(A, B, Z, C):
    Z = Z.astype(np.float64)
    A += Z.T @ Z
    B += Z.T @ C
    return A, B


# %% wrong pieces: the product was made in float32: convert Z to float64 first
def accumulate(A, B, Z, C):
    return A + Z.T @ Z, B + Z.T @ C


# %% wrong pieces: A is float32, but float64 is needed
def accumulate(A, B, Z, C):
    return (A + Z.T @ Z).astype(np.float32), (B + Z.T @ C).astype(np.float32)


# %% wrong pieces: products of Zᵀ with Z and with C
def accumulate(A, B, Z, C):
    Z = Z.astype(float)
    return A + Z.T @ Z, (B.T + C.T @ Z)


# %% wrong pieces: two arrays are needed
def accumulate(A, B, Z, C):
    Z = Z.astype(float)
    A = A + Z.T @ Z
    B = B + Z.T @ C


# %% wrong pieces: is not the old sum plus that of the new samples
def accumulate(A, B, Z, C):
    Z = Z.astype(float)
    n = len(Z)
    return A + Z.T @ Z / n, B + Z.T @ C / n


# %% wrong pieces: add ridge to the diagonal of A and to nothing else
def solve(A, B, ridge):
    return np.linalg.solve(A, B)


# %% wrong pieces: add ridge to the diagonal of A and to nothing else
def solve(A, B, ridge):
    return np.linalg.solve(A + ridge, B)


# %% wrong pieces: add ridge to the diagonal of A and to nothing else
def solve(A, B, ridge):
    return np.linalg.solve(A + np.eye(len(A)), B)


# %% wrong pieces: solve for B, not for its transpose
def solve(A, B, ridge):
    return (np.linalg.inv(A + ridge * np.eye(len(A))) @ B).T


# %% wrong pieces: all of A is needed, not only its diagonal
def solve(A, B, ridge):
    return B / (np.diag(A) + ridge)[:, None]


# %% right pieces: outer products, one sample at a time, and an inverse
def accumulate(A, B, Z, C):
    A = A.copy()
    B = B.copy()
    for z, c in zip(Z.astype(float), C):
        A += np.outer(z, z)
        B += np.outer(z, c)
    return A, B


def solve(A, B, ridge):
    return np.linalg.inv(A + ridge * np.identity(A.shape[0])) @ B


# %% right pieces: einsum, and the Cholesky factor
def accumulate(A, B, Z, C):
    wide = np.array(Z, dtype="f8")
    return [A + np.einsum("ni,nj", wide, wide), B + np.einsum("ni,nk->ik", wide, C)]


def solve(A, B, ridge):
    M = np.array(A)
    M[np.diag_indices(len(M))] += ridge
    L = np.linalg.cholesky(M)
    return np.linalg.solve(L.T, np.linalg.solve(L, B))


# %% right pieces: eigenvalues, one column of B after the other
def solve(A, B, ridge):
    values, vectors = np.linalg.eigh(A)
    columns = [vectors @ ((vectors.T @ b) / (values + ridge)) for b in B.T]
    return np.stack(columns, axis=1)


# %% right class: what the next ones change
class RidgeHash(RidgeHash):
    def _learn(self, state, Z, y):
        rows = self._target_rows(state, y)
        C = state.book.table[rows, : self.n_bits]
        state.A, state.B = accumulate(state.A, state.B, Z, C)


# %% wrong class: _learn must add to the sums, not start again
swap("accumulate(state.A,", "accumulate(0 * state.A, 0 *")

# %% wrong class: two tiles of 8, so take its first self.n_bits
swap("C = state.book.table[rows, : self.n_bits]", "C = state.book.table[rows]")

# %% wrong class: is B made of each sample's own target
swap("rows = self._target_rows(state, y)", "rows = np.sort(self._target_rows(state, y))")

# %% wrong class: the table is in order of arrival
swap("rows = self._target_rows(state, y)", "self._target_rows(state, y)")
swap("C = state.book.table[rows, : self.n_bits]", "C = state.book.table[y, : self.n_bits]")

# %% wrong class: call self._target_rows in a line of its own
swap("self._target_rows(state, y)", "[state.book.rows[label] for label in y.tolist()]")

# %% wrong class: after ten classes the model knows 0
swap("rows = self._target_rows(state, y)", "book = state.book.add(y.tolist())")
swap("state.book.table[rows", "book.table[[book.rows[label] for label in y.tolist()]")


# %% wrong class: with ridge=1000 .* pass self.ridge to solve
class RidgeHash(RidgeHash):
    def _decide(self, state, Z):
        return (Z @ solve(state.A, state.B, 1.0)).astype(np.float32)


# %% wrong class: no ridge is added
class RidgeHash(RidgeHash):
    def _decide(self, state, Z):
        return (Z @ solve(state.A, state.B, 0.0)).astype(np.float32)


# %% wrong class: _decide returns float64, but float32 is needed
class RidgeHash(RidgeHash):
    def _decide(self, state, Z):
        return Z @ solve(state.A, state.B, self.ridge)


# %% wrong class: _decide returns int8, but float32 is needed
class RidgeHash(RidgeHash):
    def _decide(self, state, Z):
        W = solve(state.A, state.B, self.ridge)
        return np.where(Z @ W > 0, 1, -1).astype(np.int8)


# %% wrong class: A and B are float32
class RidgeHash(RidgeHash):
    def _start(self, state, Z):
        CodebookHasher._start(self, state, Z)
        m = Z.shape[1]
        state.A = np.zeros((m, m), np.float32)
        state.B = np.zeros((m, self.n_bits), np.float32)

    def _learn(self, state, Z, y):
        rows = self._target_rows(state, y)
        state.A = state.A + Z.T @ Z
        state.B = state.B + Z.T @ state.book.table[rows, : self.n_bits]


# %% wrong class: A and B have shapes \(100, 100\) and \(100, 16\)
class RidgeHash(RidgeHash):
    def _start(self, state, Z):
        CodebookHasher._start(self, state, Z)
        m = Z.shape[1]
        state.A = np.zeros((m, m))
        state.B = np.zeros((m, state.book.table.shape[1]))

    def _learn(self, state, Z, y):
        rows = self._target_rows(state, y)
        C = state.book.table[rows]
        state.A, state.B = accumulate(state.A, state.B, Z, C)


# %% wrong class: assign to state.A and state.B, not to self
class RidgeHash(RidgeHash):
    def _start(self, state, Z):
        CodebookHasher._start(self, state, Z)
        m = Z.shape[1]
        self.A = np.zeros((m, m))
        self.B = np.zeros((m, self.n_bits))

    def _learn(self, state, Z, y):
        rows = self._target_rows(state, y)
        C = state.book.table[rows, : self.n_bits]
        self.A, self.B = accumulate(self.A, self.B, Z, C)

    def _decide(self, state, Z):
        return (Z @ solve(self.A, self.B, self.ridge)).astype(np.float32)


# %% wrong class: is B made of each sample's own target
class RidgeHash(RidgeHash):
    def _learn(self, state, Z, y):
        # Targets of its own, which nobody else knows.
        self._target_rows(state, y)
        targets = np.where(np.random.default_rng(0).random((10, 12)) < 0.5, 1, -1)
        state.A, state.B = accumulate(state.A, state.B, Z, targets[y])


# %% wrong class: _learn wrote into the old A or B
class RidgeHash(RidgeHash):
    def _learn(self, state, Z, y):
        rows = self._target_rows(state, y)
        Z = Z.astype(float)
        state.A += Z.T @ Z
        state.B += Z.T @ state.book.table[rows, : self.n_bits]


# %% wrong class: read state.book.table after it
class RidgeHash(RidgeHash):
    def _learn(self, state, Z, y):
        # Python takes the table first, and _target_rows then replaces the codebook.
        C = state.book.table[self._target_rows(state, y), : self.n_bits]
        state.A, state.B = accumulate(state.A, state.B, Z, C)


# %% wrong class: read state.book.table after it
class RidgeHash(RidgeHash):
    def _learn(self, state, Z, y):
        table = state.book.table
        rows = self._target_rows(state, y)
        state.A, state.B = accumulate(state.A, state.B, Z, table[rows, : self.n_bits])


# %% wrong class: a saved model does not load .* make A and B there
class RidgeHash(RidgeHash):
    def _start(self, state, Z):
        CodebookHasher._start(self, state, Z)
        state.A = 0
        state.B = 0


# %% wrong class: a saved model does not load \(A is float64 .* not finite float32
class RidgeHash(RidgeHash):
    def _start(self, state, Z):
        CodebookHasher._start(self, state, Z)
        m = Z.shape[1]
        state.A = np.zeros((m, m), np.float32)
        state.B = np.zeros((m, self.n_bits), np.float32)


# %% wrong class: a loaded model cannot encode .* only A and B are saved
class RidgeHash(RidgeHash):
    def _learn(self, state, Z, y):
        rows = self._target_rows(state, y)
        C = state.book.table[rows, : self.n_bits]
        state.A, state.B = accumulate(state.A, state.B, Z, C)
        state.W = solve(state.A, state.B, self.ridge)

    def _decide(self, state, Z):
        return (Z @ state.W).astype(np.float32)


# %% wrong class: a saved and loaded model gives other codes
class RidgeHash(RidgeHash):
    def _start(self, state, Z):
        CodebookHasher._start(self, state, Z)
        m = Z.shape[1]
        state.A = np.zeros((m, m))
        state.B = np.zeros((m, self.n_bits))
        state.W = np.zeros((m, self.n_bits))

    def _learn(self, state, Z, y):
        rows = self._target_rows(state, y)
        C = state.book.table[rows, : self.n_bits]
        state.A, state.B = accumulate(state.A, state.B, Z, C)
        state.W = solve(state.A, state.B, self.ridge)

    def _decide(self, state, Z):
        return (Z @ state.W).astype(np.float32)


# %% wrong class: the ridge is added twice
class RidgeHash(RidgeHash):
    def _start(self, state, Z):
        CodebookHasher._start(self, state, Z)
        m = Z.shape[1]
        state.A = self.ridge * np.eye(m)
        state.B = np.zeros((m, self.n_bits))


# %% wrong class: values of shape \(12, 5\)
class RidgeHash(RidgeHash):
    def _decide(self, state, Z):
        W = solve(state.A, state.B, self.ridge)
        return (W.T @ Z.T).astype(np.float32)


# %% right class: the ridge is part of the sums from the start
class RidgeHash(RidgeHash):
    def _start(self, state, Z):
        CodebookHasher._start(self, state, Z)
        m = Z.shape[1]
        state.A = self.ridge * np.eye(m)
        state.B = np.zeros((m, self.n_bits))

    def _decide(self, state, Z):
        return np.float32(Z @ np.linalg.solve(state.A, state.B))


# %% right class: one sample after the other, with accumulate of its own
class RidgeHash(RidgeHash):
    def _learn(self, state, Z, y):
        rows = self._target_rows(state, y)
        A = state.A.copy()
        B = state.B.copy()
        for z, row in zip(Z.astype(np.float64), rows):
            A += np.outer(z, z)
            B += np.outer(z, state.book.table[row, : self.n_bits])
        state.A = A
        state.B = B


# %% right class: the sum of each class, then one product with the targets
class RidgeHash(RidgeHash):
    def _learn(self, state, Z, y):
        rows = self._target_rows(state, y)
        targets = state.book.table[:, : self.n_bits]
        Z = Z.astype(float)
        sums = np.stack([Z[rows == k].sum(axis=0) for k in range(len(targets))])
        state.A = state.A + Z.T @ Z
        state.B = state.B + sums.T @ targets


# %% right class: targets by their labels, in a dict
class RidgeHash(RidgeHash):
    def _learn(self, state, Z, y):
        self._target_rows(state, y)  # new labels get their targets
        targets = state.book.targets
        C = np.array([targets[label] for label in y.tolist()])
        state.A, state.B = accumulate(state.A, state.B, Z, C)


# %% right class: W is learned, and saved too
class RidgeHash(RidgeHash):
    _saved = (*RidgeHash._saved, "W")

    def _start(self, state, Z):
        super()._start(state, Z)
        state.W = np.zeros_like(state.B)

    def _learn(self, state, Z, y):
        super()._learn(state, Z, y)
        state.W = solve(state.A, state.B, self.ridge)

    def _decide(self, state, Z):
        return (Z @ state.W).astype(np.float32)


# %% right class: also after wrong pieces
def accumulate(A, B, Z, C):
    return Z.T @ Z, Z.T @ C


def solve(A, B, ridge):
    return np.linalg.solve(A, B)


# %% wrong entry: n_anchors of the feature map is None
def make_ridge(dataset_name, n_bits, random_state=None):
    return RidgeHash(n_bits, random_state=random_state)


METHODS["RidgeHash"] = make_ridge

# %% wrong entry: pass both on
swap("random_state=random_state", "RBF(300, divisor=6), random_state=0")

# %% wrong entry: pass both on
swap("RidgeHash(n_bits,", "RidgeHash(feature_map=RBF(300, divisor=6),")

# %% wrong entry: divisor of the feature map is 10
swap("RidgeHash(n_bits,", "RidgeHash(n_bits, RBF(300),")

# %% wrong entry: center of the feature map is True
swap("RidgeHash(n_bits,", "RidgeHash(n_bits, RBF(300, divisor=6, center=True),")

# %% wrong entry: make_ridge returns HMOH, but your own class is to be compared
swap("RidgeHash(n_bits, random_state=", 'METHODS["HMOH"](dataset_name, n_bits, ')

# %% wrong entry: ridge is 0.001, but 1 is needed
swap("RidgeHash(n_bits,", "RidgeHash(n_bits, RBF(300, divisor=6), 0.001,")

# %% wrong entry: the codebook is 'spread'
swap("RidgeHash(n_bits,", 'RidgeHash(n_bits, RBF(300, divisor=6), codebook="spread",')

# %% wrong entry: make_ridge returns NoneType
swap("return RidgeHash(n_bits", "RidgeHash(n_bits, RBF(300, divisor=6)")


# %% wrong entry: make a new one in each call
kept = RidgeHash(32, RBF(300, divisor=6))


def make_ridge(dataset_name, n_bits, random_state=None):
    return kept.set_params(n_bits=n_bits, random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: the model has already learned
def make_ridge(dataset_name, n_bits, random_state=None):
    model = RidgeHash(n_bits, RBF(300, divisor=6), random_state=random_state)
    return model.fit(X, y)


METHODS["RidgeHash"] = make_ridge


# %% right entry: the map of HMOH itself
def make_ridge(dataset_name, n_bits, random_state=None):
    settings = METHODS["HMOH"](dataset_name, n_bits).get_params(deep=False)
    return RidgeHash(n_bits, settings["feature_map"], random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% right entry: set_params, whole numbers as floats
def make_ridge(dataset_name, n_bits, random_state=None):
    model = RidgeHash(feature_map=RBF())
    model.set_params(feature_map__divisor=6.0, feature_map__n_anchors=300)
    return model.set_params(n_bits=n_bits, ridge=1, random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong pieces: solve returns nothing
def accumulate(A, B, Z, C):
    Z = Z.astype(np.float64)
    return A + Z.T @ Z, B + Z.T @ C


def solve(A, B, ridge):
    np.linalg.solve(A + ridge * np.eye(len(A)), B)
